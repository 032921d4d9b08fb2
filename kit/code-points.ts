/** Any character, as the unit of `fc.string`. */
import fc from 'fast-check';

const SURROGATES_FROM = 0xd800;
const SURROGATES = 0x800;
const LAST = 0x10ffff;

/** The same as fast-check's unit `binary`, which first fills a table of all million code points. */
export const anyCodePoint = fc.nat({ max: LAST - SURROGATES }).map(
  (index) => String.fromCodePoint(index < SURROGATES_FROM ? index : index + SURROGATES),
  (character) => {
    const code = typeof character === 'string' ? (character.codePointAt(0) ?? -1) : -1;
    if (code < 0 || character !== String.fromCodePoint(code)) throw new Error('not one code point');
    return code < SURROGATES_FROM ? code : code - SURROGATES;
  },
);
