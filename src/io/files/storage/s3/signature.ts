/**
 * AWS Signature Version 4 for an object storage: of headers, and of links (docs.aws.amazon.com, "Authenticating Requests").
 * Paths are signed as they are sent: keys hold no character that needs an escape.
 */
import { createHash, createHmac } from 'node:crypto';

const ALGORITHM = 'AWS4-HMAC-SHA256';
/** The bytes of objects: their CRC-32 travels in a header that is signed. */
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';

interface SigningKey {
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

interface SignableRequest {
  readonly method: string;
  /** Host as in the `Host` header. */
  readonly host: string;
  readonly pathname: string;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case; all of them are signed. */
  readonly headers: Readonly<Record<string, string>>;
}

export class Signer {
  readonly #key: SigningKey;
  #derived: { readonly day: string; readonly key: Buffer } = { day: '', key: Buffer.alloc(0) };

  constructor(key: SigningKey) {
    this.#key = key;
  }

  /** The headers with those that authenticate the request. `payload`: SHA-256 in hex, or `UNSIGNED_PAYLOAD`. */
  signed(request: SignableRequest, payload: string, nowMs: number): Record<string, string> {
    const time = timeOf(nowMs);
    const headers = { ...request.headers, 'x-amz-content-sha256': payload, 'x-amz-date': time };
    const names = signedNames(headers);
    const search = canonicalQuery(request.query);
    const signature = this.#sign({ ...request, headers }, { names, search, payload }, time);
    const credential = `${this.#key.accessKeyId}/${this.#scope(time)}`;
    const authorization = `${ALGORITHM} Credential=${credential}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
    return { ...headers, authorization };
  }

  /** The query of a link that is valid for `seconds`. */
  linkQuery(request: SignableRequest, seconds: number, nowMs: number): string {
    const time = timeOf(nowMs);
    const names = signedNames(request.headers);
    const query = {
      ...request.query,
      'X-Amz-Algorithm': ALGORITHM,
      'X-Amz-Credential': `${this.#key.accessKeyId}/${this.#scope(time)}`,
      'X-Amz-Date': time,
      'X-Amz-Expires': String(seconds),
      'X-Amz-SignedHeaders': names.join(';'),
    };
    const search = canonicalQuery(query);
    const signature = this.#sign(request, { names, search, payload: UNSIGNED_PAYLOAD }, time);
    return `${search}&X-Amz-Signature=${signature}`;
  }

  #sign(
    { method, host, pathname, headers }: SignableRequest,
    { names, search, payload }: { names: readonly string[]; search: string; payload: string },
    time: string,
  ): string {
    const fields: Readonly<Record<string, string>> = { ...headers, host };
    const lines = names.map((name) => `${name}:${(fields[name] ?? '').trim().replace(/\s+/g, ' ')}\n`);
    const canonical = `${method}\n${pathname}\n${search}\n${lines.join('')}\n${names.join(';')}\n${payload}`;
    const text = `${ALGORITHM}\n${time}\n${this.#scope(time)}\n${sha256Hex(canonical)}`;
    return createHmac('sha256', this.#keyOf(dayOf(time)))
      .update(text)
      .digest('hex');
  }

  #scope(time: string): string {
    return `${dayOf(time)}/${this.#key.region}/s3/aws4_request`;
  }

  /** A key serves one day. */
  #keyOf(day: string): Buffer {
    if (this.#derived.day !== day) {
      const steps = [day, this.#key.region, 's3', 'aws4_request'];
      const first = Buffer.from(`AWS4${this.#key.secretAccessKey}`);
      const key = steps.reduce((before, step) => createHmac('sha256', before).update(step).digest(), first);
      this.#derived = { day, key };
    }
    return this.#derived.key;
  }
}

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Sorted by their escaped names, as they are sent and signed. */
export function canonicalQuery(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => [escaped(name), escaped(value)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function signedNames(headers: Readonly<Record<string, string>>): string[] {
  return ['host', ...Object.keys(headers)].sort();
}

/** All but the unreserved characters of RFC 3986. */
function escaped(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** `20261128T061500Z`. */
function timeOf(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
}

function dayOf(time: string): string {
  return time.slice(0, 8);
}
