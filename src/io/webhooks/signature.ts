/**
 * Headers of a delivery: `X-API-Key` (spec 5.4) and those of Standard Webhooks 1.0, signed with HMAC-SHA256. The secret
 * is the ASCII text of the API key.
 */
import { createHmac } from 'node:crypto';
import { type AppKey, sentKeyOf } from '../../domain/apps.ts';
import type { ApiKeyCipher } from '../apps/api-keys.ts';

/** API keys of one application in plain text. */
export interface DeliveryKeys {
  /** The value of `X-API-Key`. */
  readonly sent: string;
  /** Keys that sign, the newest first. */
  readonly signing: readonly string[];
}

interface SignedContent {
  readonly webhookId: string;
  /** Whole seconds of the Unix clock. */
  readonly timestamp: number;
  readonly body: Uint8Array;
}

/** `v1,<base64>`: over `<id>.<timestamp>.<body>`. */
function signatureOf(apiKey: string, { webhookId, timestamp, body }: SignedContent): string {
  const hmac = createHmac('sha256', Buffer.from(apiKey, 'utf8'));
  return `v1,${hmac.update(`${webhookId}.${timestamp}.`).update(body).digest('base64')}`;
}

/**
 * Decrypts `keys`, the newest first. A key whose seal key was lost is left out; throws when none can be opened. Undefined
 * for an empty list: the application was removed.
 */
export function openKeys(keys: readonly AppKey[], cipher: ApiKeyCipher): DeliveryKeys | undefined {
  const [newest] = keys;
  if (newest === undefined) return undefined;
  const opened = keys.flatMap((key) => {
    const apiKey = cipher.tryOpen(key);
    return apiKey === undefined ? [] : [{ ...key, apiKey }];
  });
  const sent = sentKeyOf(opened)?.apiKey ?? opened[0]?.apiKey ?? cipher.open(newest);
  return { sent, signing: opened.map(({ apiKey }) => apiKey) };
}

export function deliveryHeaders(
  { sent, signing }: DeliveryKeys,
  content: SignedContent,
  resent: boolean,
): Readonly<Record<string, string>> & { readonly 'webhook-signature': string } {
  return {
    'content-type': 'application/json',
    'user-agent': 'gatehouse-webhooks',
    'x-api-key': sent,
    'webhook-id': content.webhookId,
    'webhook-timestamp': String(content.timestamp),
    'webhook-signature': signing.map((apiKey) => signatureOf(apiKey, content)).join(' '),
    ...(resent ? { 'webhook-resend': 'true' } : {}),
  };
}
