/** The name that a client gives itself, as people see it. */

/** Control, direction and unassigned characters, which could make a name read as another. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Without invisible characters, cut to a length; undefined when nothing is left or it is no text. */
export function shownName(value: unknown, lengthMax: number): string | undefined {
  if (typeof value !== 'string') return undefined;
  const shown = [...value.replace(INVISIBLE, '').trim()].slice(0, lengthMax).join('').trim();
  return shown === '' ? undefined : shown;
}
