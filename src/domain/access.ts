/**
 * Who may see and call which tool, and see and read which resource (spec 2.5, 5.1, 5.2; mcp.md "Catalogue"). Pure:
 * the catalogue asks it once per row and class when it is loaded, so that listing and calling cannot disagree.
 */
import type { LoginType, SessionContext } from './sessions.ts';

/** Spec 2.5 `capabilityModule`: the family of codes that opens a row. */
export type CapabilityFamily = 'chat' | 'wallet';
export const CAPABILITY_FAMILIES: readonly CapabilityFamily[] = ['chat', 'wallet'];

/** Who asks. `nobody`: neither a session nor a capability code. */
export type Caller =
  | { readonly kind: 'session'; readonly session: SessionContext }
  | { readonly kind: 'capability'; readonly family: CapabilityFamily }
  | { readonly kind: 'nobody' };

/** All that visibility depends on. */
export type CallerClass = 'nobody' | LoginType | `Capability:${CapabilityFamily}`;
export const CALLER_CLASSES: readonly CallerClass[] = [
  'nobody',
  'McpBasic',
  'McpVerified',
  'McpApp',
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
}

export interface ResourceAccess extends ToolAccess {
  /** True unless `capabilityModule` is set. False without `capabilityModule`: public; true with it: both modes. */
  readonly sessionScope?: boolean;
}

/** A browser session never reaches /mcp; were one to, it would open nothing. */
export function callerClass(caller: Caller): CallerClass {
  if (caller.kind === 'session') return caller.session.loginType ?? 'nobody';
  return caller.kind === 'capability' ? `Capability:${caller.family}` : 'nobody';
}

export function mayCallTool(access: ToolAccess, caller: CallerClass): boolean {
  if (caller === 'nobody') return false;
  if (isCapability(caller)) return opensWithCode(access, caller);
  return access.capabilityModule === undefined && opensWithLogin(access, caller);
}

/** Without a session and a code the whole catalogue is advertised (spec 4.1 tools/list); no call follows from it. */
export function listsTool(access: ToolAccess, caller: CallerClass): boolean {
  return caller === 'nobody' || mayCallTool(access, caller);
}

export function mayReadResource(access: ResourceAccess, caller: CallerClass): boolean {
  const open = access.sessionScope === false && access.capabilityModule === undefined;
  if (caller === 'nobody') return open;
  if (isCapability(caller)) return opensWithCode(access, caller);
  // What anyone may read, an app may read too; a login type that is named in `restricted` stays out.
  if (open) return access.restricted?.includes(caller) !== true;
  const inSessions = access.sessionScope ?? access.capabilityModule === undefined;
  return inSessions && opensWithLogin(access, caller);
}

export function listsResource(access: ResourceAccess, caller: CallerClass): boolean {
  return caller === 'nobody' || mayReadResource(access, caller);
}

type CapabilityClass = Extract<CallerClass, `Capability:${string}`>;

function isCapability(caller: CallerClass): caller is CapabilityClass {
  return caller.startsWith('Capability:');
}

/** Spec 5.2: only rows whose `capabilityModule` is the family of the code. */
function opensWithCode(access: ToolAccess, caller: CapabilityClass): boolean {
  return access.capabilityModule !== undefined && caller === `Capability:${access.capabilityModule}`;
}

function opensWithLogin(access: ToolAccess, loginType: LoginType): boolean {
  if (access.restricted?.includes(loginType) === true) return false;
  return loginType !== 'McpApp' || access.appScope === true;
}
