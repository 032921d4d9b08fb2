/** Addresses of the form `host:port`, with brackets around IPv6. */

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
