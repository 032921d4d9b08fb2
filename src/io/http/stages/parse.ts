/** Stage `parse`: query and body become values. What the head alone shows is refused before a body is received. */
import { GatewayError } from '../../../domain/errors.ts';
import { MISSING_FEATURE } from '../../../domain/features.ts';
import { receiveBody } from '../body/receive.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { parseQuery, withCurrentNames } from '../exchange/request.ts';
import { coerceQuery } from '../table/router.ts';
import type { PipelineContext, RoutedExchange } from './stage.ts';
import { requireValid } from './validate.ts';

/** From the body on, the request takes a part of the shared bounds. Throws their errors too. */
export function parse(exchange: RoutedExchange, pipeline: PipelineContext): boolean {
  const { head, ready } = exchange;
  const { route, bodyCheck, queryCheck } = ready;
  if (route.idempotent === true) requireUsableKey(exchange);
  // After the session and the limits: who may not call the route does not learn more, and repeats are counted.
  if (route.feature !== undefined && pipeline.options.missingFeatures?.().has(route.feature) === true)
    throw new GatewayError(MISSING_FEATURE[route.feature], route.feature);
  if (queryCheck !== undefined) {
    const query = withCurrentNames(route.formerNames, parseQuery(head.rawQuery), 'query') as Readonly<
      Record<string, string>
    >;
    exchange.query = coerceQuery(ready, query);
    requireValid(queryCheck, exchange.query, 'query');
  }
  exchange.hold();
  if (head.hasBody) return receiveBody(exchange, pipeline);
  if (bodyCheck === undefined) return true;
  if (route.bodyOptional !== true) throw new GatewayError('InvalidInput', 'body: is required');
  exchange.body = {};
  return true;
}

/** An invalid key is refused: if it were ignored, the caller would assume that a repeat is safe. */
function requireUsableKey({ head, idempotencyKey }: Exchange): void {
  const sent = head.joined('idempotency-key', ',');
  if (sent !== undefined && idempotencyKey === undefined) {
    throw new GatewayError(
      'InvalidInput',
      'Idempotency-Key: expected 1 to 128 visible ASCII characters, once',
    );
  }
}
