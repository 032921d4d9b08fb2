/** Stage `limit`: the limits that a route is charged for beside those of its session (spec 8.1). */
import { GatewayError } from '../../../domain/errors.ts';
import { decodeBase64url } from '../../../domain/ids.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { RoutedExchange } from './stage.ts';

const PUBLIC_KEY_BYTES = 32;

/** Throws `AccessRateLimit`, and `InvalidInput` for a malformed `pkey`. */
export function limit(exchange: RoutedExchange): boolean {
  const { counted, chargesKey } = exchange.ready;
  if (exchange.session === undefined && counted) exchange.limiter.chargeAnonymous(1);
  if (chargesKey) chargePublicKey(exchange);
  return true;
}

/** Header `pkey` (spec 8.1): absent is not charged, malformed is refused. Keyed by the decoded bytes. */
function chargePublicKey({ head, limiter }: Exchange): void {
  if (head.repeatedHeaders.has('pkey')) throw new GatewayError('InvalidInput', 'pkey');
  const sent = head.header('pkey');
  if (sent === undefined) return;
  if (decodeBase64url(sent, PUBLIC_KEY_BYTES) === undefined) throw new GatewayError('InvalidInput', 'pkey');
  limiter.chargeKey('p', sent, 1);
}
