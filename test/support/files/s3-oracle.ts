/** Judges signatures of requests and links with `@smithy/signature-v4`, the signer of the AWS SDK. */
import { createHash, createHmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import type { Test } from 'tap';
import { stopAfter } from '../../../kit/close-after.ts';
import { MemoryS3, type MemoryS3Options, type S3Request } from '../../../kit/storage/memory-s3.ts';
import type { BucketConfiguration } from '../../../src/domain/config/file-servers.ts';

export const KEY_PAIR = { accessKeyId: 'AKEXAMPLE', secretAccessKey: 'a/secret+key' };
export const REGION = 'eu-central-1';

type Bytes = string | ArrayBuffer | ArrayBufferView;

class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>;

  constructor(secret?: Bytes) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }

  update(data: Bytes): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('not used');
  }
}

function bytesOf(data: Bytes): Buffer {
  if (typeof data === 'string') return Buffer.from(data);
  return data instanceof ArrayBuffer
    ? Buffer.from(data)
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

const oracle = new SignatureV4({
  service: 's3',
  region: REGION,
  credentials: KEY_PAIR,
  sha256: Sha256,
  uriEscapePath: false,
  applyChecksum: false,
});

/** Says what is wrong with the signature of a request, or of a link. */
export async function signatureFault(request: S3Request): Promise<string | undefined> {
  const isLink = request.query.has('X-Amz-Signature');
  const given = isLink ? (request.query.get('X-Amz-Signature') ?? '') : (request.headers.authorization ?? '');
  const expected = isLink ? await linkSignature(request) : await authorization(request, given);
  return given === expected ? undefined : `expected ${expected}, got ${given}`;
}

async function authorization(request: S3Request, given: string): Promise<string> {
  const names = /SignedHeaders=([^,]*),/.exec(given)?.[1]?.split(';') ?? [];
  const headers = Object.fromEntries(names.map((name) => [name, String(request.headers[name] ?? '')]));
  const signed = await oracle.sign(requestOf(request, headers), {
    signingDate: dateOf(headers['x-amz-date'] ?? ''),
    signableHeaders: new Set(names),
  });
  return signed.headers['authorization'] ?? '';
}

async function linkSignature(request: S3Request): Promise<string> {
  const headers = { host: String(request.headers.host) };
  const { query, ...rest } = requestOf(request, headers);
  const own = Object.fromEntries(Object.entries(query).filter(([name]) => !name.startsWith('X-Amz-')));
  const hidden = { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
  const signed = await oracle.presign(
    { ...rest, headers: { ...headers, ...hidden }, query: own },
    {
      signingDate: dateOf(request.query.get('X-Amz-Date') ?? ''),
      expiresIn: Number(request.query.get('X-Amz-Expires')),
      unsignableHeaders: new Set(Object.keys(hidden)),
      unhoistableHeaders: new Set(Object.keys(hidden)),
    },
  );
  return String(signed.query?.['X-Amz-Signature']);
}

function requestOf(request: S3Request, headers: Record<string, string>) {
  const [path = ''] = request.target.split('?');
  const [hostname = '', port = ''] = String(request.headers.host).split(':');
  return {
    method: request.method,
    protocol: 'http:',
    hostname,
    port: Number(port),
    path,
    query: Object.fromEntries(request.query),
    headers,
  };
}

/** `20261128T061500Z`. */
function dateOf(text: string): Date {
  return new Date(text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

/** A storage that refuses every request whose signature the oracle would not make. */
export async function startS3(t: Test, options: MemoryS3Options = {}): Promise<MemoryS3> {
  return stopAfter(t, await MemoryS3.start({ signatureFault, ...options }));
}

export function bucketAt(url: string, more: Partial<BucketConfiguration> = {}): BucketConfiguration {
  return {
    ...{ endpoint: url, region: REGION, bucket: 'files', prefix: 'one/', ...KEY_PAIR },
    ...{ pathStyle: true, redirectDownloads: false, ...more },
  };
}
