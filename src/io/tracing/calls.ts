/**
 * Spans of session checks, tool calls and module calls, with the names of the HTTP, MCP and GenAI conventions. Arguments,
 * queries, bodies and tokens never enter a span.
 */
import type { SessionKind } from '../../domain/sessions.ts';
import type { RouteContext } from '../http/table/route.ts';
import type { Target } from '../http-client/endpoint.ts';
import type { ModuleResult } from '../http-client/types.ts';
import type { TraceSpan } from './span.ts';
import { TracedActors } from './traced-actors.ts';

const CLIENT_ERROR = 400;
/** A process has none. */
const PORTS: Readonly<Record<string, number>> = { 'https:': 443, 'http:': 80 };

/** `template`: path of the endpoint without its values; undefined where the path comes from a caller. */
export function openModuleCall(
  parent: TraceSpan | undefined,
  method: string,
  { origin }: Pick<Target, 'origin'>,
  template: string | undefined,
): TraceSpan | undefined {
  if (parent === undefined) return undefined;
  const { hostname, port, protocol } = new URL(origin);
  const span = parent.child(template === undefined ? method : `${method} ${template}`, 'client');
  span.set({
    'http.request.method': method,
    'url.template': template,
    'server.address': hostname,
    'server.port': Number(port) || PORTS[protocol],
  });
  return span;
}

/** The look-up of a token's session at its account. */
export function openSessionCheck(parent: TraceSpan, kind: SessionKind): TraceSpan {
  const span = parent.child('session check');
  span.set({ 'gatehouse.session.kind': kind });
  return span;
}

/** Without an outcome the check was refused: over a limit, or the account could not be asked. */
export function endSessionCheck(span: TraceSpan, outcome: 'valid' | 'unknown' | undefined): void {
  span.set({ 'gatehouse.session.outcome': outcome ?? 'refused' });
  span.end();
}

/** The headers of a module call whose parent is its span. */
export function withTraceparent(
  headers: Readonly<Record<string, string>>,
  span: TraceSpan | undefined,
): Readonly<Record<string, string>> {
  return span === undefined ? headers : { ...headers, traceparent: span.traceparent };
}

export function endModuleCall(span: TraceSpan, result: ModuleResult): void {
  if (result.ok) endAnswered(span, result.answer.status);
  else span.end(result.error);
}

/** A status of 400 or more is an error of the call (HTTP conventions, client spans). */
export function endAnswered(span: TraceSpan, status: number): void {
  span.set({ 'http.response.status_code': status });
  span.end(status >= CLIENT_ERROR ? String(status) : undefined);
}

/** A call of a tool or a read of a resource, for its span. */
interface SpannedCall {
  readonly event: string;
  /** Name in the catalog; a name that a caller made up counts as an outcome only. */
  readonly name: string;
}

export function endCall(span: TraceSpan, { event, name }: SpannedCall, outcome: string): void {
  const isTool = event === 'mcp.tool';
  const isPrompt = event === 'mcp.prompt';
  const method = isTool ? 'tools/call' : isPrompt ? 'prompts/get' : 'resources/read';
  const known = outcome === 'unknown' ? undefined : name;
  span.name = (isTool || isPrompt) && known !== undefined ? `${method} ${known}` : method;
  span.set({
    'mcp.method.name': method,
    'jsonrpc.protocol.version': '2.0',
    'gen_ai.operation.name': isTool ? 'execute_tool' : undefined,
    'gen_ai.tool.name': isTool ? known : undefined,
    'gen_ai.prompt.name': isPrompt ? known : undefined,
    'mcp.resource.uri': isTool || isPrompt ? undefined : known,
    'gatehouse.call.outcome': outcome,
  });
  // The MCP conventions name a result with `isError` so.
  if (outcome === 'error') span.end('tool_error');
  else span.end(outcome === 'ok' ? undefined : outcome);
}

/**
 * The context of one call in a sampled request: calls of a batch share everything but the span that theirs are below. A
 * proxy, because a context is an object with private state.
 */
export function contextBelow(context: RouteContext, span: TraceSpan): RouteContext {
  const { actors } = context;
  return new Proxy(context, {
    get(target, name) {
      if (name === 'span') return span;
      if (name === 'actors') return actors instanceof TracedActors ? actors.below(span) : actors;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
