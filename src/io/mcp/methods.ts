/** The methods of /mcp: what each message is answered with, as JSON-RPC text. One row a method. */
import { callerClass } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { RouteContext } from '../http/route.ts';
import type { ModuleClient } from '../modules/client.ts';
import { type Admission, callerOf } from './admission.ts';
import { type Asking, auditRefused } from './audit.ts';
import { Calls } from './call.ts';
import type { Catalogue } from './catalogue.ts';
import { CallsInFlight, cancelScope } from './in-flight.ts';
import { errorEnvelope, paramText, type RpcMessage, type RpcRequest, resultEnvelope } from './rpc.ts';
import type { GatewayServices } from './tools/gateway.ts';

/** The version that is always reported (spec 9), whatever a client asks for. */
export const PROTOCOL_VERSION = '2024-11-05';

export interface McpOptions {
  /** `current` is read once per message, so a reload never shows half. */
  readonly catalogue: { readonly current: Catalogue };
  readonly modules: ModuleClient;
  readonly gateway: GatewayServices;
}

type Answer = string | Promise<string>;
type Silent = Extract<RpcMessage, { kind: 'silent' }>;

export class Methods {
  readonly #catalogue: McpOptions['catalogue'];
  readonly #inFlight = new CallsInFlight();
  readonly #calls: Calls;

  constructor(options: McpOptions) {
    this.#catalogue = options.catalogue;
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
        return this.#list(request, { context, caller: callerOf(request, context, admission) });
      case 'tools/call':
      case 'resources/read':
        return this.#call(request, this.#asking(request, context, admission));
      default:
        throw new GatewayError('MethodNotFound');
    }
  }

  /** A message that gets no answer. Only a cancellation says anything, and only to the session's own calls. */
  hear(message: Silent, context: RouteContext, admission: Admission): void {
    if (message.method !== 'notifications/cancelled' || admission.kind !== 'session') return;
    const id = paramText(message, 'requestId');
    const scope = cancelScope(admission.session.id, context.header('mcp-session-id'));
    if (id !== undefined) this.#inFlight.cancel(scope, id);
  }

  #list(request: RpcRequest, { caller }: Asking): string {
    // Asked for because resources are served; there are no templates.
    if (request.method === 'resources/templates/list')
      return resultEnvelope(request.id, '{"resourceTemplates":[]}');
    const { toolLists, resourceLists } = this.#catalogue.current;
    const lists = request.method === 'tools/list' ? toolLists : resourceLists;
    return resultEnvelope(request.id, lists[callerClass(caller)]);
  }

  #call(request: RpcRequest, asking: Asking): Answer {
    return request.method === 'tools/call'
      ? this.#calls.callTool(request, asking)
      : this.#calls.readResource(request, asking);
  }

  #asking(request: RpcRequest, context: RouteContext, admission: Admission): Asking {
    try {
      return { context, caller: callerOf(request, context, admission) };
    } catch (error) {
      auditRefused(request, context);
      throw error;
    }
  }
}

/** The error of one message. Anything but a row of the table is a bug and goes on to the pipeline. */
export function failureText(error: unknown, id: string | undefined): string {
  if (!(error instanceof GatewayError)) throw error;
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
