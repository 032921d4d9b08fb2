/**
 * The headers of a delivery: `X-API-Key` (spec 5.4) and those of Standard Webhooks 1.0, signed with HMAC-SHA256. The
 * secret is the API key as it was shown, its characters taken as bytes.
 */
import { createHmac } from 'node:crypto';

export interface SignedContent {
  readonly webhookId: string;
  /** Whole seconds of the Unix clock. */
  readonly timestamp: number;
  readonly body: Uint8Array;
}

/** `v1,<base64>`: over `<id>.<timestamp>.<body>`. */
export function signatureOf(apiKey: string, { webhookId, timestamp, body }: SignedContent): string {
  const hmac = createHmac('sha256', Buffer.from(apiKey, 'utf8'));
  return `v1,${hmac.update(`${webhookId}.${timestamp}.`).update(body).digest('base64')}`;
}

/** `apiKeys`: those that are valid now, the newest first; it is the one that is sent, all of them sign. */
export function deliveryHeaders(
  apiKeys: readonly string[],
  content: SignedContent,
  resent: boolean,
): Record<string, string> {
  const [newest] = apiKeys;
  if (newest === undefined) throw new RangeError('a delivery is signed with at least one key');
  return {
    'content-type': 'application/json',
    'user-agent': 'gatehouse-webhooks',
    'x-api-key': newest,
    'webhook-id': content.webhookId,
    'webhook-timestamp': String(content.timestamp),
    'webhook-signature': apiKeys.map((apiKey) => signatureOf(apiKey, content)).join(' '),
    ...(resent ? { 'webhook-resend': 'true' } : {}),
  };
}
