/**
 * Access rules: which caller sees and calls a tool, and which sees and reads a resource (spec 2.5, 5.1, 5.2). Pure: the
 * catalogue asks it once per row and class when it is loaded, so that listing and calling cannot disagree.
 */
import { isProvenLogin, type LoginType, type SessionContext } from './sessions.ts';

/** Spec 2.5 `capabilityModule`: the family of codes that opens a row. */
export type CapabilityFamily = 'chat' | 'wallet';
export const CAPABILITY_FAMILIES: readonly CapabilityFamily[] = ['chat', 'wallet'];

/** The caller of a request. `anonymous`: neither a session nor a capability code. */
export type Caller =
  | { readonly kind: 'session'; readonly session: SessionContext }
  | { readonly kind: 'capability'; readonly family: CapabilityFamily }
  | { readonly kind: 'anonymous' };

/** The login type of a session; a login that proved its key is apart, and so is the consent to read. */
type LoginClass = LoginType | 'McpBasic:proven' | 'McpApp:proven';
/** All that visibility depends on. */
export type CallerClass = 'anonymous' | LoginClass | `Capability:${CapabilityFamily}`;
export const CALLER_CLASSES: readonly CallerClass[] = [
  'anonymous',
  'McpBasic',
  'McpBasic:proven',
  'McpVerified',
  'McpApp',
  'McpApp:proven',
  'Capability:chat',
  'Capability:wallet',
];

export interface ToolAccess {
  /** Login types that are denied. */
  readonly restricted?: readonly LoginType[];
  /** True lets `McpApp` sessions in; false unless given. */
  readonly appScope?: boolean;
  /** Set: the row belongs to capability mode. */
  readonly capabilityModule?: CapabilityFamily;
  /**
   * The row asks for a login that proved its key: `personal` unless the policy opens personal reads without proof,
   * `always` under every policy. Built-in rows alone have it: a configured row says in `restricted` whom it refuses.
   */
  readonly proof?: 'personal' | 'always';
}

/** Access rules of the configuration that hold for all rows. */
export interface AccessPolicy {
  /** `McpBasicPersonalReads`: sessions without proof of the key read balances, history, addresses. */
  readonly personalReads: boolean;
  /** `Modules.<name>.encodedSlashes`: names of modules with it. Absent: none. */
  readonly encodedSlashes?: ReadonlySet<string>;
}

export interface ResourceAccess extends ToolAccess {
  /** True unless `capabilityModule` is set. False without `capabilityModule`: public; true with it: both modes. */
  readonly sessionScope?: boolean;
}

/** A browser session never reaches /mcp; were one to, it would open nothing. */
export function callerClass(caller: Caller): CallerClass {
  if (caller.kind === 'session') return loginClass(caller.session) ?? 'anonymous';
  return caller.kind === 'capability' ? `Capability:${caller.family}` : 'anonymous';
}

/** Undefined for a browser session. */
export function loginClass({ loginType, proven }: SessionContext): LoginClass | undefined {
  if (proven && loginType === 'McpApp') return 'McpApp:proven';
  return proven && loginType === 'McpBasic' ? 'McpBasic:proven' : (loginType ?? undefined);
}

export function mayCallTool(access: ToolAccess, caller: CallerClass, policy: AccessPolicy): boolean {
  if (caller === 'anonymous') return false;
  if (isCapability(caller)) return opensWithCode(access, caller);
  return access.capabilityModule === undefined && opensWithLogin(access, caller, policy);
}

/** Without a session and a code the whole catalogue is advertised (spec 4.1 tools/list); no call follows from it. */
export function listsTool(access: ToolAccess, caller: CallerClass, policy: AccessPolicy): boolean {
  return caller === 'anonymous' || mayCallTool(access, caller, policy);
}

/** The same rule decides about the list of resources. */
export function mayReadResource(access: ResourceAccess, caller: CallerClass, policy: AccessPolicy): boolean {
  const open = access.sessionScope === false && access.capabilityModule === undefined;
  if (caller === 'anonymous') return open;
  if (isCapability(caller)) return opensWithCode(access, caller);
  // An app may read what anyone may read; a login type that is named in `restricted` stays out.
  if (open) return !denies(access, caller);
  const inSessions = access.sessionScope ?? access.capabilityModule === undefined;
  return inSessions && opensWithLogin(access, caller, policy);
}

type CapabilityClass = Extract<CallerClass, `Capability:${string}`>;

function isCapability(caller: CallerClass): caller is CapabilityClass {
  return caller.startsWith('Capability:');
}

/** Spec 5.2: only rows whose `capabilityModule` is the family of the code. */
function opensWithCode(access: ToolAccess, caller: CapabilityClass): boolean {
  return access.capabilityModule !== undefined && caller === `Capability:${access.capabilityModule}`;
}

function opensWithLogin(access: ToolAccess, caller: LoginClass, { personalReads }: AccessPolicy): boolean {
  if (denies(access, caller) || (loginTypeOf(caller) === 'McpApp' && access.appScope !== true)) return false;
  // The consent to read opens what McpBasic has where personal reads are open, and no more.
  if (caller === 'McpBasic:proven') return access.proof !== 'always';
  const asksForProof = access.proof === 'always' || (access.proof === 'personal' && !personalReads);
  return !asksForProof || isProvenLogin(loginTypeOf(caller), caller === 'McpApp:proven');
}

function denies({ restricted }: ToolAccess, caller: LoginClass): boolean {
  return restricted?.includes(loginTypeOf(caller)) === true;
}

function loginTypeOf(caller: LoginClass): LoginType {
  if (caller === 'McpApp:proven') return 'McpApp';
  return caller === 'McpBasic:proven' ? 'McpBasic' : caller;
}

/** The class of caller that may call the tool, for a session that could have it by signing its login. */
export function provenAlone(caller: CallerClass, allowed: ReadonlySet<CallerClass>): string {
  const proven = caller === 'McpBasic' ? 'McpVerified' : caller === 'McpApp' ? 'McpApp:proven' : caller;
  return allowed.has(proven) ? ' without proof of the key, log in with X-Timestamp and X-Signature' : '';
}
