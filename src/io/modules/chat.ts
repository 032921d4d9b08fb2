/**
 * Delivery of one-time codes through the chat module. Holds the secret that derives a code from its seed, so that the
 * actors' state contains no code (decision 0014).
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Administration } from '../../actors/runtime/administration.ts';
import type { CodeMessage, CodePort, CodeSource } from '../../actors/runtime/ports.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { parseEndpoint } from '../http-client/endpoint.ts';
import { gatewayHeaders } from '../http-client/headers.ts';
import type { ModuleClient } from './client.ts';

const META_KEY = 'oneTimeCodes';
const SECRET_BYTES = 32;
const ENDPOINT = 'chat:/chat/v1/codes/deliver';
const DELIVERY_TIMEOUT_MS = 10 * SECOND_MS;

interface CodePortOptions {
  /** 32 bytes. Read at each use: the journal that stores it opens after the ports are created. */
  readonly secret: () => Promise<Uint8Array>;
  readonly modules: Pick<ModuleClient, 'call'>;
  readonly chatUrl: string;
  readonly project: string;
  readonly newRequestId: () => string;
}

/** The secret of this journal, the same on every node. A new one is stored before this resolves. */
export async function openCodeSecret(administration: Pick<Administration, 'metaOnce'>): Promise<Uint8Array> {
  const stored = await administration.metaOnce(META_KEY, randomBytes(SECRET_BYTES).toString('base64url'));
  return Buffer.from(String(stored), 'base64url');
}

/** Digits from 64 bits of HMAC-SHA-256 (RFC 2104); the bias of the remainder is below 2^-37 with eight. */
function codeOf(secret: Uint8Array, { seed, digits }: CodeSource): string {
  const mac = createHmac('sha256', secret).update(seed).digest();
  return String(mac.readBigUInt64BE() % 10n ** BigInt(digits)).padStart(digits, '0');
}

/** Empty without a chat module. */
export function codePorts(
  chatUrl: string | undefined,
  options: Omit<CodePortOptions, 'chatUrl'>,
): { codes?: CodePort } {
  return chatUrl === undefined ? {} : { codes: createCodePort({ ...options, chatUrl }) };
}

export function createCodePort(options: CodePortOptions): CodePort {
  const { secret, modules, project, newRequestId } = options;
  const parsed = parseEndpoint(ENDPOINT, new Map([['chat', options.chatUrl]]));
  if (!parsed.ok) throw new Error(`the address of the chat module ${parsed.fault}`);
  const { origin, path } = parsed.endpoint;
  const url = { origin, pathname: path, search: '' };
  return {
    async deliver({ channel, address, seed, digits }: CodeMessage) {
      const code = codeOf(await secret(), { seed, digits });
      const facts = { project, requestId: newRequestId() };
      const result = await modules.call({
        method: 'POST',
        url,
        headers: { ...gatewayHeaders({ kind: 'anonymous' }, facts), 'content-type': 'application/json' },
        body: JSON.stringify({ channel, address, code }),
        timeoutMs: DELIVERY_TIMEOUT_MS,
        endpoint: ENDPOINT,
      });
      const accepted = result.ok && result.answer.status >= 200 && result.answer.status < 300;
      return accepted ? { ok: true, value: null } : { ok: false, error: 'DeliveryUnavailable' };
    },
    async matches(source, code) {
      const expected = Buffer.from(codeOf(await secret(), source));
      const given = Buffer.from(code);
      return { ok: true, value: given.length === expected.length && timingSafeEqual(given, expected) };
    },
  };
}
