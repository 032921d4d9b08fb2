/** The methods of /mcp: what each message is answered with, as JSON-RPC text. One row a method. */
import { callerClass } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { RouteContext } from '../http/route.ts';
import type { ModuleClient } from '../modules/client.ts';
import type { CallObserver } from '../observability/metrics.ts';
import { type Admission, askingOf } from './admission.ts';
import { type Asking, auditRefused } from './audit.ts';
import { Calls } from './call.ts';
import type { CapabilityCodes } from './capability.ts';
import type { Catalogue } from './catalog.ts';
import { CallsInFlight, cancelScope, capabilityScope } from './in-flight.ts';
import { presentedCode, presentedDevice } from './presented.ts';
import { errorEnvelope, paramText, type RpcMessage, type RpcRequest, resultEnvelope } from './rpc.ts';
import type { GatewayServices } from './tools/gateway.ts';

/** The version that is always reported (spec 9), whatever a client asks for. */
export const PROTOCOL_VERSION = '2024-11-05';

export interface McpOptions {
  /** `current` is read once per message, so a reload never shows half. */
  readonly catalogue: { readonly current: Catalogue };
  readonly modules: ModuleClient;
  readonly gateway: GatewayServices;
  readonly codes: CapabilityCodes;
  /** Told of every call and every refusal. */
  readonly onCall?: CallObserver | undefined;
}

/** JSON text, encoded where it was at hand so. */
export type RpcText = string | Buffer;
type Answer = RpcText | Promise<RpcText>;
type Silent = Extract<RpcMessage, { kind: 'silent' }>;

export class McpDispatcher {
  readonly #catalogue: McpOptions['catalogue'];
  readonly #inFlight = new CallsInFlight();
  readonly #calls: Calls;
  readonly #codes: CapabilityCodes;

  constructor(options: McpOptions) {
    this.#catalogue = options.catalogue;
    this.#codes = options.codes;
    this.#calls = new Calls({ ...options, inFlight: this.#inFlight });
  }

  /** Throws the row of a refusal. */
  answer(request: RpcRequest, context: RouteContext, admission: Admission): Answer {
    switch (request.method) {
      case 'initialize':
        return resultEnvelope(request.id, initialized(context));
      case 'ping':
        return resultEnvelope(request.id, '{}');
      case 'tools/list':
      case 'resources/list':
      case 'resources/templates/list':
        return after(askingOf(request, context, admission, this.#codes), (asking) =>
          this.#list(request, asking),
        );
      case 'tools/call':
      case 'resources/read':
        return after(this.#asking(request, context, admission), (asking) => this.#call(request, asking));
      default:
        throw new GatewayError('MethodNotFound');
    }
  }

  /** A message that gets no answer. Only a cancellation says anything, and only to the session's own calls. */
  hear(message: Silent, context: RouteContext, admission: Admission): void {
    if (message.method !== 'notifications/cancelled') return;
    const id = paramText(message, 'requestId');
    const scope = scopeHeard(context, admission);
    if (id !== undefined && scope !== undefined) this.#inFlight.cancel(scope, id);
  }

  #list(request: RpcRequest, { caller }: Asking): RpcText {
    // Asked for because resources are served; there are no templates.
    if (request.method === 'resources/templates/list')
      return resultEnvelope(request.id, '{"resourceTemplates":[]}');
    const { toolLists, resourceLists } = this.#catalogue.current;
    const lists = request.method === 'tools/list' ? toolLists : resourceLists;
    return lists[callerClass(caller)].answer(request.id);
  }

  #call(request: RpcRequest, asking: Asking): Answer {
    return request.method === 'tools/call'
      ? this.#calls.callTool(request, asking)
      : this.#calls.readResource(request, asking);
  }

  #asking(request: RpcRequest, context: RouteContext, admission: Admission): Asking | Promise<Asking> {
    const refuse = (error: unknown): never => {
      auditRefused(request, context, this.#calls.observe);
      throw error;
    };
    try {
      const asking = askingOf(request, context, admission, this.#codes);
      return asking instanceof Promise ? asking.catch(refuse) : asking;
    } catch (error) {
      return refuse(error);
    }
  }
}

/** A code in the transport's own places; its call is under way, so the code was good. */
function scopeHeard(context: RouteContext, admission: Admission): string | undefined {
  const mcpSessionId = context.header('mcp-session-id');
  if (admission.kind === 'session') return cancelScope(admission.session.id, mcpSessionId);
  const code = presentedCode({}, context);
  const device = presentedDevice({}, context);
  if (admission.kind === 'unknown' || code.kind !== 'value') return undefined;
  return capabilityScope(
    { code: code.value, ...(device.kind === 'value' ? { deviceGuid: device.value } : {}) },
    mcpSessionId,
  );
}

function after(asking: Asking | Promise<Asking>, then: (asking: Asking) => Answer): Answer {
  return asking instanceof Promise ? asking.then(then) : then(asking);
}

/** The error of one message. Anything but a row of the table is a bug and goes on to the pipeline. */
export function failureText(error: unknown, id: string | undefined, context: RouteContext): string {
  if (!(error instanceof GatewayError)) throw error;
  context.error = error.row;
  const retryAfterSeconds = error.row === 'AccessRateLimit' ? (error.retryAfterSeconds ?? 1) : undefined;
  return errorEnvelope(id, error.row, error.detail, retryAfterSeconds);
}

function initialized({ site }: RouteContext): string {
  return JSON.stringify({
    protocolVersion: PROTOCOL_VERSION,
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: site.project, version: site.version },
  });
}
