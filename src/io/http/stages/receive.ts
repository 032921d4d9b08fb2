/** Stage `receive`: copies the head of a request, and refuses what no route may see. */
import { GatewayError } from '../../../domain/errors.ts';
import { corsHeaders } from '../checks/cors.ts';
import { Exchange } from '../exchange/exchange.ts';
import { errorBody } from '../exchange/reply.ts';
import { IncomingHead } from '../exchange/request.ts';
import { directClient, readAddress } from '../listen/client-address.ts';
import { guard } from '../listen/guard.ts';
import type { HttpRequest, HttpResponse, UpgradeContext } from '../listen/server.ts';
import { Reply } from '../table/route.ts';
import { answer, settle } from './send.ts';
import type { PipelineContext } from './stage.ts';

/** The exchange of a request. Its head is copied before the library's call returns. */
export function openExchange(
  response: HttpResponse,
  request: HttpRequest,
  upgrade: UpgradeContext | undefined,
  pipeline: PipelineContext,
): Exchange {
  const { addresses, options, services, listener } = pipeline;
  const head = new IncomingHead(request);
  const peer = readAddress(response.getRemoteAddress());
  const found = addresses.trustsAny
    ? addresses.resolve(peer, {
        proxied: readAddress(response.getProxiedRemoteAddress()),
        forwardedFor: head.joined('x-forwarded-for', ','),
      })
    : directClient(peer);
  const client = options.connections?.isNearCapacity() === true ? { ...found, alone: true } : found;
  const { clock, elapsed, newRequestId, sendfileHeader, tracing } = options;
  // Before anything else reads the head: no module may see the field.
  const asksForFiles = sendfileHeader !== undefined && head.take(sendfileHeader);
  const exchange = new Exchange(
    response,
    head,
    client,
    services,
    listener,
    newRequestId(),
    clock(),
    elapsed(),
  );
  // uWS accepts PROXY protocol headers of any peer before any request, without an option to refuse them.
  exchange.isProxied = response.getProxiedRemoteAddressAsText().byteLength > 0;
  exchange.proxySendsFiles = asksForFiles && addresses.trusts(peer);
  exchange.upgradeContext = upgrade;
  if (tracing !== undefined) exchange.span = tracing.begin(exchange, addresses.trusts(peer));
  return exchange;
}

export function receive(exchange: Exchange, pipeline: PipelineContext): boolean {
  const { head, site, origin } = exchange;
  const { counts } = pipeline;
  if (exchange.isProxied && !pipeline.addresses.takesProxyHeader(origin.peer)) {
    counts.proxyHeadersRefusedTotal += 1;
    return cut(exchange, pipeline);
  }
  exchange.services.loopWatch?.note('', '', exchange.startedMs);
  const decision = guard(head);
  if (decision === 'close') {
    counts.smuggledTotal += 1;
    return cut(exchange, pipeline);
  }
  if (exchange.last || head.hasBody) exchange.watch();
  if (decision === 'tooLarge') {
    const error = errorBody('InvalidInput', 'the URL is too long or there are too many headers');
    answer(exchange, pipeline, Reply.json(431, { error }), true);
    return false;
  }
  if (pipeline.stopping) {
    counts.stoppingTotal += 1;
    // The route determines the form of the error.
    const { ready } = { ready: undefined, ...pipeline.router.match(head.method, head.path) };
    exchange.ready = ready;
    throw new GatewayError('Stopping');
  }
  if (site.checkHost) pipeline.checkHost(head);
  exchange.cors = corsHeaders(site, head);
  return true;
}

function cut(exchange: Exchange, pipeline: PipelineContext): false {
  exchange.cut();
  settle(exchange, pipeline);
  return false;
}
