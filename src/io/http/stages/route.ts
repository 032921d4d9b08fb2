/** Stage `route`: finds the route of method and path, and answers what no route serves. */
import { GatewayError } from '../../../domain/errors.ts';
import { anyOriginHeaders, isPreflight, preflight } from '../checks/cors.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { errorReply } from '../exchange/reply.ts';
import type { Reply } from '../table/route.ts';
import type { Match } from '../table/router.ts';
import { answer } from './send.ts';
import type { PipelineContext } from './stage.ts';

export function route(exchange: Exchange, pipeline: PipelineContext): boolean {
  const { head } = exchange;
  const match = pipeline.router.match(head.method, head.path, head.method === 'OPTIONS' && isPreflight(head));
  if (match.found !== 'route') {
    answer(exchange, pipeline, unroutedReply(exchange, match), false);
    return false;
  }
  const { ready } = match;
  exchange.ready = ready;
  exchange.params = match.params;
  pipeline.services.loopWatch?.label(ready.route.path);
  if (ready.route.anyOrigin === true) exchange.cors = anyOriginHeaders(head);
  return true;
}

/** The answer to an unknown path or method. Charged as a request without a session; preflights are charged less. */
function unroutedReply(exchange: Exchange, match: Exclude<Match, { found: 'route' }>): Reply {
  exchange.inAccessCheck = false;
  if (isPreflight(exchange.head)) exchange.limiter.chargePreflight();
  else exchange.limiter.chargeAnonymous(1);
  if (match.found === 'nothing') throw new GatewayError('NotFound');
  const { site, head } = exchange;
  const anyOrigin = match.offered.some((offered) => offered.anyOrigin === true);
  if (anyOrigin) exchange.cors = anyOriginHeaders(head);
  if (head.method === 'OPTIONS') {
    const offers = match.offered.flatMap((offered) => offered.offers?.(exchange.settings) ?? []);
    return preflight(site, head, match.methods, offers, anyOrigin);
  }
  return errorReply(new GatewayError('MethodNotAllowed'), [['Allow', match.methods.join(', ')]]);
}
