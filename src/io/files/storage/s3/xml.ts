/** Reads the few elements of an object storage's XML that the gateway needs. Linear in the text, which is bounded. */

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

/** Content of the first element of this name, without its entities; undefined when there is none. */
export function textOf(xml: string, name: string): string | undefined {
  const opening = `<${name}>`;
  const start = xml.indexOf(opening);
  if (start < 0) return undefined;
  const end = xml.indexOf(`</${name}>`, start);
  return end < 0 ? undefined : decoded(xml.slice(start + opening.length, end));
}

/** Contents of all elements of this name, as they are written. */
export function elementsOf(xml: string, name: string): string[] {
  const found: string[] = [];
  const [opening, closing] = [`<${name}>`, `</${name}>`];
  for (let start = xml.indexOf(opening); start >= 0; start = xml.indexOf(opening, start)) {
    const end = xml.indexOf(closing, start);
    if (end < 0) return found;
    found.push(xml.slice(start + opening.length, end));
    start = end;
  }
  return found;
}

function decoded(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|([a-z]{2,4}));/g, (whole, decimal, hex, name) => {
    if (name !== undefined) return ENTITIES[name] ?? whole;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

export function escapedText(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
