/**
 * Texts and bytes that a key holder signs. Browser logins sign a text that names its purpose, the domain and the
 * challenge; MCP logins sign eight bytes (spec 5.1). The two can never be mistaken for each other, and the domain line
 * stops relaying.
 */
import { SECOND_MS } from './time.ts';

export type ChallengeKind = 'register' | 'login' | 'consent';

/** Seconds that the timestamp of an MCP login may be off, either way, inclusive. Source: spec 5.1 rule 2. */
const MCP_TIMESTAMP_WINDOW_SECONDS = 300n;

const INT64_PATTERN = /^(?:0|-?[1-9][0-9]{0,18})$/;

/** The first part of the signed text, up to and including the last line feed. */
export function signPrefix(
  kind: ChallengeKind,
  domain: string,
  challengeId: number,
  challenge: string,
): string {
  return `gateway-auth/v1\n${kind}\n${domain}\n${challengeId}\n${challenge}\n`;
}

/** The signed text of a browser login or a registration: the prefix and the key in base64url. */
export function browserMessage(prefix: string, publicKey: string): Uint8Array {
  return Buffer.from(prefix + publicKey, 'utf8');
}

/** The signed message of McpVerified: the timestamp as little-endian int64, not its decimal text (spec 5.1). */
export function mcpLoginMessage(unixSeconds: bigint): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(unixSeconds);
  return bytes;
}

/** `X-Timestamp`: Unix seconds as an integer string; undefined when it is not one or does not fit int64. */
export function parseUnixSeconds(text: string): bigint | undefined {
  if (!INT64_PATTERN.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/** Whole seconds on both sides, so the edges are exact. */
export function isTimestampFresh(unixSeconds: bigint, nowMs: number): boolean {
  const difference = BigInt(Math.floor(nowMs / SECOND_MS)) - unixSeconds;
  return difference <= MCP_TIMESTAMP_WINDOW_SECONDS && -difference <= MCP_TIMESTAMP_WINDOW_SECONDS;
}
