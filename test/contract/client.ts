/**
 * HTTP client of the contract tests: real sockets, without code of the program. It can use a loopback address of its own,
 * so that checks do not share address limits.
 */
import type { Agent, IncomingHttpHeaders } from 'node:http';
import { sendHttp } from '../../kit/http.ts';

export type Headers = Readonly<Record<string, string>>;

export interface Sending {
  readonly headers?: Headers | undefined;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as `application/octet-stream`, unless `headers` name another type. */
  readonly bytes?: Uint8Array;
  /** Loopback address that the request comes from. */
  readonly from?: string | undefined;
  /** Agent with the connections to use; by default a new connection. */
  readonly agent?: Agent | undefined;
}

/** One answer. `at` and similar methods read the JSON body by a path such as `result.0.id`. */
export class Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;

  constructor(status: number, headers: IncomingHttpHeaders, bytes: Buffer) {
    this.status = status;
    this.headers = headers;
    this.bytes = bytes;
  }

  get text(): string {
    return this.bytes.toString('utf8');
  }

  /** The parsed body; undefined if it is not JSON. */
  get json(): unknown {
    try {
      return JSON.parse(this.text);
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  /** A header as one string, empty if absent. */
  header(name: string): string {
    return String(this.headers[name.toLowerCase()] ?? '');
  }

  at(path: string): unknown {
    return read(this.json, path);
  }

  textAt(path: string): string {
    const value = this.at(path);
    return value === undefined || value === null ? '' : String(value);
  }

  listAt(path: string): unknown[] {
    const value = this.at(path);
    return Array.isArray(value) ? value : [];
  }

  /** HTTP status and `error.code`. */
  get refusal(): readonly [number, unknown] {
    return [this.status, this.at('error.code')];
  }
}

export function read(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

/** Sends one request and reads the whole answer. Rejects if the connection breaks. */
export async function send(method: string, url: string, sending: Sending = {}): Promise<Answer> {
  const { json, bytes, from, agent = false } = sending;
  const body =
    json === undefined ? bytes : Buffer.from(typeof json === 'string' ? json : JSON.stringify(json));
  const type = json === undefined ? 'application/octet-stream' : 'application/json';
  const headers = {
    ...(body === undefined ? {} : { 'content-type': type, 'content-length': body.length }),
    ...sending.headers,
  };
  const place = from === undefined ? {} : { localAddress: from };
  const answer = await sendHttp(url, { method, headers, agent, body, ...place });
  return new Answer(answer.status, answer.headers, answer.bytes);
}

export function queryOf(fields: Readonly<Record<string, string | number>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) search.set(name, String(value));
  return search.toString();
}
