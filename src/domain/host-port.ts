/** Parts of addresses: `host:port` with brackets around IPv6, and ends that do not count. */

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

const FORM = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+)):(0|[1-9][0-9]{0,4})$/;
const PORT_MAX = 65_535;

/** Undefined for a text of another form. */
export function parseHostPort(text: string): HostPort | undefined {
  const [, bracketed, plain, digits] = FORM.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  return host === undefined || port > PORT_MAX ? undefined : { host, port };
}

export function hostPortText({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Returns the text without the character at its end, however often it stands there. Linear, unlike an expression that
 * begins at any of them.
 */
export function withoutTrailing(text: string, character: '/' | '.'): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}
