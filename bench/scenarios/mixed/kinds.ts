/** The kinds of work of a mixed load: how much of it each is, and what one of them asks. One row a kind. */
import { type SoftwareKey, verifiedHeaders } from '../../../kit/agent.ts';
import type { RawAnswer, RawConnection } from '../transfers/raw-connection.ts';

/** Accounts, sessions and files of the load, created through the public API beforehand. */
export interface MixedFixture {
  readonly url: string;
  /** The internal listener; undefined: nothing is pushed. */
  readonly internal: string | undefined;
  readonly moduleKey: string;
  readonly bearers: readonly string[];
  readonly cookies: readonly string[];
  /** Keys of accounts that do nothing but log in: the hundred-and-first session of a key ends its first. */
  readonly loginKeys: readonly SoftwareKey[];
  /** Cookies of accounts that do nothing but upload; none: nothing is uploaded. */
  readonly uploadCookies: readonly string[];
  /** Path of a file of `FILE_BYTES`, by its code; undefined: there is none. */
  readonly filePath: string | undefined;
  /** Users with event streams and an application with a webhook. */
  readonly audience: readonly string[];
}

export interface MixedKind {
  readonly name: string;
  /** Share of all calls that are due; those of the table make 1. */
  readonly share: number;
  readonly listener: 'public' | 'internal';
  /** Under way at once. */
  readonly connections: number;
  /** True if the fixture has what it needs; every fixture has unless given. */
  readonly fits?: (fixture: MixedFixture) => boolean;
  /** The `count`th of its kind. Undefined: good; else what went wrong. */
  work(fixture: MixedFixture, connection: RawConnection, count: number): Promise<string | undefined>;
}

export const FILE_BYTES = 1024 * 1024;
const RANGE_BYTES = 4_096;
const UPLOAD_BYTES = 16 * 1024;
const UPLOAD = Buffer.alloc(UPLOAD_BYTES, 'an upload of the mixed bench; ');
const SECOND_MS = 1_000;
const CONNECTIONS = 16;
const JSON_TYPE = { 'Content-Type': 'application/json' };

export const KINDS: readonly MixedKind[] = [
  mcp('tools/call', 0.3, 'tools/call', { name: 'wallet_get_balance', arguments: {} }, '"content"'),
  mcp('tools/list', 0.1, 'tools/list', {}, '"wallet_get_balance"'),
  row('session check', 0.25, async ({ cookies }, connection, count) =>
    judge(
      await connection.ask('GET', '/auth/v1/info', { Cookie: turn(cookies, count) }),
      '"session":{"userId":"',
    ),
  ),
  row('REST proxy', 0.14, async ({ bearers }, connection, count) =>
    judge(
      await connection.ask('GET', '/wallet/v1/balance/get', {
        Authorization: `Bearer ${turn(bearers, count)}`,
      }),
      '"balances"',
    ),
  ),
  { ...row('range download', 0.1, downloadRange), fits: ({ filePath }) => filePath !== undefined },
  row('login', 0.05, async ({ loginKeys }, connection, count) => {
    const headers = verifiedHeaders(turn(loginKeys, count), Math.floor(Date.now() / SECOND_MS));
    return judge(await connection.ask('POST', '/auth/v1/mcp_login', headers), '"sessionId"');
  }),
  { ...row('upload', 0.03, upload), connections: 8, fits: ({ uploadCookies }) => uploadCookies.length > 0 },
  {
    ...row('event pushed', 0.03, push),
    listener: 'internal',
    connections: 4,
    fits: ({ internal }) => internal !== undefined,
  },
];

/** The kinds that this fixture can do, each with its requests a second out of so many in all. */
export function ratesOf(
  fixture: MixedFixture,
  ratePerSecond: number,
): { readonly kind: MixedKind; readonly ratePerSecond: number }[] {
  const able = KINDS.filter(({ fits }) => fits?.(fixture) ?? true);
  const whole = able.reduce((sum, { share }) => sum + share, 0);
  return able.map((kind) => ({ kind, ratePerSecond: (ratePerSecond * kind.share) / whole }));
}

/**
 * Undefined for a good answer. A refusal that says when to come again is `refused 503` or `refused 429`; any other status
 * is `status N`, and `unexpected body` has the right one.
 */
export function judge(
  { status, head, text }: Pick<RawAnswer, 'status' | 'head' | 'text'>,
  expect: string,
  wanted = 200,
): string | undefined {
  if (status === wanted) return text.includes(expect) ? undefined : 'unexpected body';
  const declared = (status === 503 || status === 429) && /\r\nretry-after:/.test(head);
  return declared ? `refused ${status}` : `status ${status}`;
}

/** Does this error say that the server failed without a time at which to come again? */
export function isUndeclared(error: string): boolean {
  return /^status 5\d\d$/.test(error);
}

function row(name: string, share: number, work: MixedKind['work']): MixedKind {
  return { name, share, listener: 'public', connections: CONNECTIONS, work };
}

function mcp(name: string, share: number, method: string, params: object, expect: string): MixedKind {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  return row(name, share, async ({ bearers }, connection, count) => {
    const headers = { ...JSON_TYPE, Authorization: `Bearer ${turn(bearers, count)}` };
    return judge(await connection.ask('POST', '/mcp', headers, body), expect);
  });
}

async function downloadRange(
  { filePath = '/' }: MixedFixture,
  connection: RawConnection,
  count: number,
): Promise<string | undefined> {
  const first = (count * RANGE_BYTES) % FILE_BYTES;
  const range = `bytes=${first}-${first + RANGE_BYTES - 1}`;
  const answer = await connection.ask('GET', filePath, { Range: range });
  const error = judge(answer, '', 206);
  return error === undefined && answer.bodyBytes !== RANGE_BYTES ? 'unexpected body' : error;
}

/** A small file: its draft, then its bytes. */
async function upload(
  { uploadCookies }: MixedFixture,
  connection: RawConnection,
  count: number,
): Promise<string | undefined> {
  const headers = { Cookie: turn(uploadCookies, count) };
  const query = `fileName=mixed-${count}.bin&fileSize=${UPLOAD_BYTES}`;
  const draft = await connection.ask('POST', `/auth/v2/file/create_draft?${query}`, headers);
  const fileId = /"result":"(\d+):/.exec(draft.text)?.[1];
  if (fileId === undefined) return judge(draft, 'a draft');
  const type = { ...headers, 'Content-Type': 'application/octet-stream' };
  return judge(await connection.ask('POST', `/auth/v2/file/stream_upload/${fileId}`, type, UPLOAD), '');
}

/** One event for one user of the audience, with the moment it left. */
async function push(
  { audience, moduleKey }: MixedFixture,
  connection: RawConnection,
  count: number,
): Promise<string | undefined> {
  const data = { id: String(count), sentMs: nowMs() };
  const event = {
    module: 'core',
    tick: String(count + 1),
    type: 'Mixed',
    crmId: turn(audience, count),
    data,
  };
  const body = Buffer.from(JSON.stringify({ events: [event] }));
  const headers = { ...JSON_TYPE, 'X-Module-Key': moduleKey };
  return judge(await connection.ask('POST', '/internal/v1/events', headers, body), '"accepted":1');
}

/** Milliseconds of a clock that all processes of this machine share. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

function turn<Item>(items: readonly Item[], count: number): Item {
  const item = items[count % items.length];
  if (item === undefined) throw new Error('no participants');
  return item;
}
