/** `mcp_login`: the signature of a timestamp gives a bearer for /mcp (docs/specification.md#51-mcp-login). */
import { addressOf } from './address.ts';
import { type AgentKey, keyOf } from './agent-key.ts';
import { type SendOptions, SYSTEM, send } from './send.ts';

export interface LoginOptions extends Partial<SendOptions> {
  /** Address of the gateway or of its MCP endpoint. */
  readonly url: string | URL;
  /** A key, or its secret half in base64url. */
  readonly key: AgentKey | string;
  /** Log in for this application (McpApp). */
  readonly appId?: string | undefined;
}

export interface McpSession {
  readonly sessionId: string;
  readonly loginType: 'McpBasic' | 'McpVerified' | 'McpApp';
  /** ISO 8601, by the clock of the gateway. */
  readonly expiresUtc: string;
  readonly appId: string | null;
  readonly userId: string | null;
  /** Time from the answer to the end of the session, whatever the own clock says. */
  readonly livesMs: number;
  /** The gateway's clock minus the own one. */
  readonly clockOffsetMs: number;
}

/** The gateway refused a login; `code` is that of its error table. */
export class LoginRefused extends Error {
  readonly status: number;
  readonly code: number;

  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Codes of the gateway's error table. */
export const LOGIN_CODES = { unknownKey: 1101, accessDenied: 1103, challengeExpired: 1104 } as const;

/** The headers of a proven login: the signature is over the timestamp as 8 bytes, little-endian. */
export function sign(key: AgentKey | string, unixSeconds: number): Record<string, string> {
  const { publicKey, sign: signBytes } = typeof key === 'string' ? keyOf(key) : key;
  const message = Buffer.alloc(8);
  message.writeBigInt64LE(BigInt(unixSeconds));
  return {
    'X-PublicKey': publicKey,
    'X-Timestamp': String(unixSeconds),
    'X-Signature': signBytes(message),
  };
}

/** Throws {@link LoginRefused}. A clock that is wrong is corrected by the `Date` of the refusal, once. */
export async function login(options: LoginOptions, clockOffsetMs = 0): Promise<McpSession> {
  const system = { ...SYSTEM, ...given(options) };
  const first = await attempt(options, system, clockOffsetMs);
  if (first.session !== undefined) return first.session;
  if (first.refused.code !== LOGIN_CODES.challengeExpired || first.offsetMs === undefined)
    throw first.refused;
  const second = await attempt(options, system, first.offsetMs);
  if (second.session === undefined) throw second.refused;
  return second.session;
}

/** The parts of the system that a caller replaces. */
export function given({ fetch, now, wait }: Partial<SendOptions>): Partial<SendOptions> {
  return { ...(fetch && { fetch }), ...(now && { now }), ...(wait && { wait }) };
}

type Attempt = { readonly offsetMs: number | undefined } & (
  | { readonly session: McpSession; readonly refused?: undefined }
  | { readonly session?: undefined; readonly refused: LoginRefused }
);

async function attempt(
  { url, key, appId }: LoginOptions,
  system: SendOptions,
  clockOffsetMs: number,
): Promise<Attempt> {
  const headers = {
    ...sign(key, Math.floor((system.now() + clockOffsetMs) / 1000)),
    ...(appId === undefined ? {} : { 'X-App-Id': appId }),
  };
  const response = await send(
    `${addressOf(url).origin}/auth/v1/mcp_login`,
    { method: 'POST', headers },
    system,
  );
  const offsetMs = offsetOf(response, system.now());
  const answer = parse(await response.text());
  if (response.status === 200 && answer.result !== undefined) {
    const gatewayMs = system.now() + (offsetMs ?? 0);
    const livesMs = Date.parse(answer.result.expiresUtc) - gatewayMs;
    return { offsetMs, session: { ...answer.result, livesMs, clockOffsetMs: offsetMs ?? 0 } };
  }
  const { code = 0, message = `HTTP ${response.status}` } = answer.error ?? {};
  return { offsetMs, refused: new LoginRefused(response.status, code, message) };
}

/** By the `Date` of an answer, which has whole seconds. */
function offsetOf({ headers }: Response, nowMs: number): number | undefined {
  const gatewayMs = Date.parse(headers.get('date') ?? '');
  return Number.isNaN(gatewayMs) ? undefined : gatewayMs - nowMs;
}

interface LoginAnswer {
  readonly result?: Omit<McpSession, 'livesMs' | 'clockOffsetMs'>;
  readonly error?: { readonly code?: number; readonly message?: string };
}

/** A page of a proxy that is no JSON says nothing. */
function parse(text: string): LoginAnswer {
  try {
    const answer: unknown = JSON.parse(text);
    return typeof answer === 'object' && answer !== null ? answer : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
