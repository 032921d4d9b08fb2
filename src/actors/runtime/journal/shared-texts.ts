/**
 * One string for a text that many records hold alike: what a session is for, the name of a browser. Each record read
 * from the journal, and each request, brings a copy of its own otherwise.
 */
import { ownText } from './own-strings.ts';

/** Texts held here. One more, and the table begins anew: holders of a text keep it, and the next record adds it again. */
const TEXTS_MAX = 2_048;
/** Longer ones stay as they are: no two actors share them. UTF-16 units. */
const LENGTH_MAX = 256;

const texts = new Map<string, string>();

/** An equal text. */
export function shared<Text extends string>(text: Text): Text {
  const known = texts.get(text);
  if (known !== undefined) return known as Text;
  if (text.length > LENGTH_MAX) return text;
  if (texts.size >= TEXTS_MAX) texts.clear();
  // Often cut out of a header or a row, which it must not keep.
  const own = ownText(text) as Text;
  texts.set(own, own);
  return own;
}

/** Counts the texts that are held now. */
export function sharedTexts(): number {
  return texts.size;
}
