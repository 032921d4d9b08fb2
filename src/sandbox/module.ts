/**
 * Definition of a sandbox module: a table of endpoints over a state that changes only by applying records, live and on
 * replay; and input readers, which name the field that they refuse.
 */
import { compileJsonSchema, compileWhenAsked } from '../domain/schema.ts';
import type { ModuleCall } from './call-arguments.ts';
import type { DavAnswer, DavCall } from './dav.ts';
import { SandboxError } from './errors.ts';
import type { EventList } from './events.ts';
import type { SandboxRecord } from './record-log.ts';
import type { JsonSchema } from './schemas.ts';

/** Request and answer of an endpoint. docs/modules.openapi.json and docs/sandbox.md are printed from it. */
interface EndpointInterface {
  readonly summary: string;
  /** Operation that no tool calls. Those of a tool have its name, and take its arguments. */
  readonly name?: string;
  /** Arguments that no tool sends: of the query for GET, of the body for POST. Checked before the handler runs. */
  readonly takes?: JsonSchema;
  /** `result` of the answer. */
  readonly gives: JsonSchema;
}

export type Interface = Readonly<Record<string, EndpointInterface>>;

export interface ModuleEndpoint extends EndpointInterface {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /**
   * `user`: needs X-Crm. `gateway`: called by the gateway for itself, refused with a user. Otherwise the X-Scopes of
   * a capability code, without X-Crm.
   */
  readonly calledFor: 'user' | 'gateway' | 'Capability:chat' | 'Capability:wallet';
  /** Returns `result`; throws `SandboxError`. Synchronous: two calls never interleave. */
  handle(call: ModuleCall): unknown;
}

export interface SandboxModule {
  readonly name: string;
  readonly endpoints: readonly ModuleEndpoint[];
  readonly events: EventList;
  /** An account was created at the gateway: what the module keeps for each user begins, once. */
  signedUp?(call: ModuleCall): void;
  apply(record: SandboxRecord): void;
  /** Answers every path of the module, in place of endpoints. Synchronous, throws `SandboxError`. */
  dav?(call: DavCall): DavAnswer;
}

type Handle = (call: ModuleCall) => unknown;

/** An endpoint of a module by its name, `GET chats/list`. */
export function endpointOf<Endpoints extends Interface>(
  module: string,
  endpoints: Endpoints,
  key: keyof Endpoints & string,
  calledFor: ModuleEndpoint['calledFor'],
  handle: Handle,
): ModuleEndpoint {
  const described: EndpointInterface = endpoints[key] as Endpoints[typeof key];
  const [method, path] = key.split(' ');
  return {
    ...described,
    method: method === 'GET' ? 'GET' : 'POST',
    path: `/${module}/v1/${path}`,
    calledFor,
    handle: described.takes === undefined ? handle : checked(described.takes, handle),
  };
}

/** A member with null counts as left out. */
function checked(takes: JsonSchema, handle: Handle): Handle {
  const schema = compileWhenAsked(takes, () => compileJsonSchema(takes));
  const properties = takes['properties'] as Readonly<Record<string, JsonSchema>>;
  return (call) => {
    const query = [...call.query].map(([name, text]) => [name, queryValue(properties[name], text)] as const);
    const body = Object.entries(call.body).filter(([, value]) => value !== null);
    const [fault] = schema.faults(Object.fromEntries([...query, ...body]));
    if (fault !== undefined) throw new SandboxError('BadRequest', `${fault.path.slice(1)} ${fault.message}`);
    return handle(call);
  };
}

/** Numbers of a query are texts. */
function queryValue(schema: JsonSchema | undefined, text: string): string | number {
  return schema?.['type'] === 'integer' && /^[0-9]{1,6}$/.test(text) ? Number(text) : text;
}
