/** Texts of a document that becomes rows: without characters that hide or steer, and cut at a word. */
import { INVISIBLE_CHARACTERS } from '../../domain/schema.ts';

const UNSEEN = new RegExp(`[${INVISIBLE_CHARACTERS}\\p{Cc}\\u2028\\u2029]`, 'gu');

/** One line of at most `max` characters. */
export function oneLine(text: string, max: number): string {
  const line = text.replace(/\s+/g, ' ').replace(UNSEEN, '').trim();
  if (line.length <= max) return line;
  const cut = line.slice(0, max - 1);
  const word = cut.lastIndexOf(' ');
  return `${cut.slice(0, word > max / 2 ? word : max - 1).replace(/\p{Cs}$/u, '')}…`;
}
