/**
 * The XML of CardDAV, as far as the sandbox needs it: answers are written from names and texts, and of a request the kind
 * of report and its hrefs are read. Prefixes are fixed in answers and free in requests.
 */

/** `D` WebDAV, `C` CardDAV, `S` what calendar servers share (getctag). */
const NAMESPACES =
  'xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav" xmlns:S="http://calendarserver.org/ns/"';
const HREFS_MAX = 1_000;

/** Properties of one resource: XML by qualified name. */
export type Properties = Readonly<Record<string, string>>;

/** One resource of an answer; without properties it does not exist. */
export interface Described {
  readonly href: string;
  readonly properties: Properties | undefined;
}

export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('\r', '&#13;');
}

export function href(path: string): string {
  return `<D:href>${escaped(path)}</D:href>`;
}

export function multiStatus(resources: readonly Described[]): string {
  return `<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus ${NAMESPACES}>${resources.map(responseOf).join('')}</D:multistatus>`;
}

function responseOf({ href: path, properties }: Described): string {
  if (properties === undefined)
    return `<D:response>${href(path)}<D:status>HTTP/1.1 404 Not Found</D:status></D:response>`;
  const texts = Object.entries(properties).map(([name, xml]) => `<${name}>${xml}</${name}>`);
  return `<D:response>${href(path)}<D:propstat><D:prop>${texts.join('')}</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>`;
}

/** Local name of the first element; '' when the text is no XML. */
export function rootName(xml: string): string {
  return /^(?:\s|<\?[^>]*\?>|<!--[^>]*-->)*<(?:[\w.-]+:)?([\w.-]+)/.exec(xml)?.[1] ?? '';
}

/** Texts of `href`, in their order. */
export function hrefsOf(xml: string): string[] {
  const found: string[] = [];
  for (const [, text = ''] of xml.matchAll(/<(?:[\w.-]+:)?href>([^<]*)</g)) {
    if (found.length >= HREFS_MAX) break;
    found.push(unescaped(text.trim()));
  }
  return found;
}

function unescaped(text: string): string {
  return text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&apos;', "'")
    .replaceAll('&amp;', '&');
}
