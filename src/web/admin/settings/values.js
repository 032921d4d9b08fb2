/** Values of settings as people read and type them. */
import { sizeText } from '../../shared/ui.js';

/** The largest unit of a time that divides it. */
const TIMES = [
  [86_400, 'day', 'days'],
  [3_600, 'hour', 'hours'],
  [60, 'minute', 'minutes'],
];
/** Below, seconds and bytes are read as they are. */
const LARGE = { s: 120, bytes: 1024, 'bytes/s': 1024 };

const grouped = (value) => value.toLocaleString('en');

/** The text of its field. */
export const fieldText = (item, value) => (item.type === 'number' ? grouped(value) : String(value));

/** A value in a sentence, without its unit. */
export function valueText(item, value) {
  if (item.type === 'flag') return value === 1 ? 'on' : 'off';
  if (item.type === 'number') return grouped(value);
  return value === '' ? 'empty' : `“${value}”`;
}

/** A large number in a larger unit: "1 day", "20 MB"; undefined where its field says enough. */
export function meaningOf({ unit }, value) {
  if (!(value >= LARGE[unit])) return undefined;
  if (unit !== 's') return unit === 'bytes' ? sizeText(value) : `${sizeText(value)}/s`;
  const found = TIMES.find(([seconds]) => value % seconds === 0);
  if (found === undefined) return undefined;
  const [seconds, one, several] = found;
  const times = value / seconds;
  return `${grouped(times)} ${times === 1 ? one : several}`;
}

/** `{ value }` of what was typed, or `{ fault }`. Digits may be grouped. */
export function readField(item, text) {
  if (item.type !== 'number') return { value: item.type === 'flag' ? Number(text) : text };
  const digits = text.replaceAll(/[\s,'_]/g, '');
  const value = Number(digits);
  if (/^-?\d+$/.test(digits) && value >= item.min && value <= item.max) return { value };
  return { fault: `Enter a whole number from ${grouped(item.min)} to ${grouped(item.max)}.` };
}
