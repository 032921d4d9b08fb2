/**
 * Passes a WebSocket handshake on to its module (RFC 6455 4.2.1), through the stages of a proxied call. The module answers
 * first: another answer than 101 is the client's, and 101 makes both connections one relay.
 */
import { performance } from 'node:perf_hooks';
import type { Caller } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import { errorReply } from '../http/exchange/reply.ts';
import { UpgradeReply } from '../http/exchange/stream.ts';
import type { HeaderList, Reply, RouteContext } from '../http/table/route.ts';
import { audit, auditAttempt, type CallOutcome, type RequestContext } from '../mcp/audit.ts';
import { endAnswered, openModuleCall, withTraceparent } from '../tracing/calls.ts';
import { ProxiedCall } from './answer.ts';
import {
  callRecordOf,
  endForwarded,
  type ForwardDeps,
  outcomeOfEnding,
  requestContextOf,
  requestOf,
} from './forward.ts';
import { moduleOf } from './reach.ts';
import type { SocketRelay } from './socket-relay.ts';
import type { WebSockets } from './web-sockets.ts';

export interface UpgradeDeps extends ForwardDeps {
  readonly sockets: WebSockets;
}

/** Word in audit records, in place of a method. */
const METHOD = 'WEBSOCKET';
const SWITCHING = 101;
/** Base64 of 16 bytes. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;
const VERSION = '13';
/** A token (RFC 9110 5.6.2). */
const PROTOCOL = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const PROTOCOLS_MAX = 32;
/** RFC 9110 15.5.22 and RFC 6455 4.4. */
const VERSION_FIELDS: HeaderList = [
  ['Upgrade', 'websocket'],
  ['Sec-WebSocket-Version', VERSION],
];

/** True also for a handshake that is faulty: no module may receive its rest as an ordinary request. */
export function asksForSocket({ header }: RouteContext): boolean {
  return lists(header('upgrade'), 'websocket') || header('sec-websocket-key') !== undefined;
}

/** Resolves with 101, with the module's other answer, or with 426 for another version than 13. */
export async function upgrade(deps: UpgradeDeps, context: RouteContext, caller: Caller): Promise<Reply> {
  const requestContext = requestContextOf(context);
  const record = callRecordOf(deps, { method: METHOD, rawPath: context.rawPath });
  const refuse = (outcome: CallOutcome, error: unknown) => {
    audit(requestContext, record, outcome);
    return error;
  };
  const fault = faultOf(context);
  if (fault !== undefined) throw refuse('invalid', new GatewayError('InvalidInput', fault));
  if (context.header('sec-websocket-version')?.trim() !== VERSION) {
    audit(requestContext, record, 'invalid');
    return errorReply(
      new GatewayError('UpgradeRequired', 'sec-websocket-version: expected 13'),
      VERSION_FIELDS,
    );
  }
  const protocols = protocolsOf(context);
  if (protocols === undefined)
    throw refuse(
      'invalid',
      new GatewayError('InvalidInput', 'sec-websocket-protocol: expected tokens, each once'),
    );
  const request = requestOf(deps, requestContext, caller, record);
  let relay: SocketRelay;
  try {
    relay = deps.sockets.admit(context);
  } catch (error) {
    throw refuse('limited', error);
  }
  // A socket may change anything at its module, so the intent is on disk first.
  if (!(await auditAttempt(requestContext, record))) {
    relay.lost();
    throw new GatewayError('ModuleFailed');
  }
  return handshake(deps, requestContext, { relay, record, protocols, request });
}

interface Handshake {
  readonly relay: SocketRelay;
  readonly record: ReturnType<typeof callRecordOf>;
  readonly protocols: readonly string[];
  readonly request: ReturnType<typeof requestOf>;
}

function handshake(
  deps: UpgradeDeps,
  requestContext: RequestContext,
  { relay, record, protocols, request }: Handshake,
): Promise<Reply> {
  const { context } = requestContext;
  const { holder, rawPath } = context;
  const startedMs = performance.now();
  const span = openModuleCall(context.span, request.method, request.url, undefined);
  const answer = new ProxiedCall({
    isHead: false,
    isPersonal: context.session !== undefined,
    url: request.url,
    rawPath,
    onEnded(ending) {
      record.backendMs = performance.now() - startedMs;
      if (span !== undefined) endForwarded(span, ending);
      relay.lost();
      audit(requestContext, record, outcomeOfEnding(ending));
    },
  });
  return new Promise((resolve, reject) => {
    const socket = deps.modules.connect(
      { ...request, headers: withTraceparent(request.headers, span), protocols, holder },
      relay.toModule(answer, (protocol) => {
        const backendMs = performance.now() - startedMs;
        if (span !== undefined) endAnswered(span, SWITCHING);
        const elapsedMs = performance.now() - record.startedMs;
        const { event } = record;
        record.observe?.({ event, name: moduleOf(rawPath), outcome: 'ok', elapsedMs, backendMs });
        relay.onEnded = (outcome, utcMs) =>
          audit(requestContext, { ...record, backendMs, utcMs, observe: undefined }, outcome);
        resolve(new UpgradeReply(relay, protocol));
      }),
    );
    answer.reply.then(resolve, reject);
    if (socket === undefined) return;
    answer.attach(socket);
    relay.attach(socket);
    context.onAbort(() => socket.stop());
  });
}

/** Returns the fault of the handshake, apart from its version. */
function faultOf({ header, upgradeContext }: RouteContext): string | undefined {
  if (!lists(header('upgrade'), 'websocket')) return 'upgrade: expected websocket';
  if (!lists(header('connection'), 'upgrade')) return 'connection: expected upgrade';
  // The library hands over GET with a key of 24 characters.
  if (upgradeContext === undefined || !KEY.test(header('sec-websocket-key') ?? ''))
    return 'sec-websocket-key: expected GET and 16 bytes in base64';
  return undefined;
}

/** Does a list of tokens hold this one, in any case? */
function lists(field: string | undefined, token: string): boolean {
  return field?.split(',').some((each) => each.trim().toLowerCase() === token) === true;
}

/** The subprotocols that the client offers; undefined if they are no tokens, or one is there twice. */
function protocolsOf({ allHeaders }: RouteContext): readonly string[] | undefined {
  let offered = '';
  for (const [name, value] of allHeaders()) if (name === 'sec-websocket-protocol') offered = value;
  if (offered === '') return [];
  const protocols = offered.split(',').map((each) => each.trim());
  const isValid = protocols.length <= PROTOCOLS_MAX && protocols.every((each) => PROTOCOL.test(each));
  return isValid && new Set(protocols).size === protocols.length ? protocols : undefined;
}
