/**
 * The definitions of tools of one other MCP server: those that an admin has seen and approved, and those that wait for it.
 * The first list of a server is approved as it stands.
 */
import { hash } from 'node:crypto';
import {
  type AuditRecord,
  defineActor,
  type Outcome,
  type Refusal,
  refuse,
  type Turn,
} from '../runtime/actor.ts';
import type { Protocol } from '../runtime/protocol.ts';

/** Tools with a definition here, and characters of all definitions. */
export const DEFINITIONS_MAX = 512;
const CHARACTERS_MAX = 4 * 1024 * 1024;

/** A definition that is not served. */
interface Proposal {
  readonly text: string;
  readonly sinceMs: number;
  /** An admin decided against it. */
  readonly isHidden: boolean;
}

interface McpServerState {
  /** Its first list was taken as a whole. */
  readonly isOpened: boolean;
  /** Text of the approved definition, by the server's name of the tool. */
  readonly approved: Readonly<Record<string, string>>;
  readonly proposed: Readonly<Record<string, Proposal>>;
}

/** State of a definition that the server lists now. */
export type DefinitionState = 'approved' | 'new' | 'changed' | 'hidden';

/** The reply to `see`. */
export interface SeenTool {
  readonly state: DefinitionState;
  /** No list had this definition before: of all nodes one gets true. */
  readonly isFound: boolean;
}

interface SeeTool {
  readonly type: 'see';
  readonly name: string;
  readonly text: string;
}
/** All tools of the first list were seen. */
interface OpenServer {
  readonly type: 'open';
}
/** Forgets tools that the server lists no more. */
interface KeepTools {
  readonly type: 'keep';
  readonly names: readonly string[];
}
/** The admin who decided: `by` is the user id, null for the command on the machine. Goes to the audit log. */
export interface JudgeOrigin {
  readonly by: string | null;
  readonly from: { readonly address: string } | { readonly uid: number };
}
interface JudgeTool extends JudgeOrigin {
  readonly type: 'approve' | 'hide';
  /** Its name in the configuration, for the audit log. */
  readonly server: string;
  readonly name: string;
  /** `digestOf` the text that the admin saw. */
  readonly digest: string;
}
interface ApproveTool extends JudgeTool {
  readonly type: 'approve';
}
interface HideTool extends JudgeTool {
  readonly type: 'hide';
}

type McpServerEvent =
  | { readonly type: 'approved'; readonly name: string; readonly text: string }
  | { readonly type: 'proposed'; readonly name: string; readonly text: string; readonly utcMs: number }
  | { readonly type: 'hidden'; readonly name: string; readonly text: string; readonly utcMs: number }
  | { readonly type: 'kept'; readonly names: readonly string[] }
  | { readonly type: 'opened' };

interface DefinitionsQuery {
  readonly type: 'definitions';
}

export interface Definitions {
  readonly isOpened: boolean;
  readonly approved: McpServerState['approved'];
  readonly proposed: McpServerState['proposed'];
}

type McpServerProtocol = Protocol<
  SeeTool | OpenServer | KeepTools | ApproveTool | HideTool,
  {
    readonly see: SeenTool;
    readonly open: null;
    readonly keep: null;
    readonly approve: null;
    readonly hide: null;
  },
  DefinitionsQuery,
  { readonly definitions: Definitions }
>;

export const mcpServer = defineActor<McpServerState, McpServerProtocol, McpServerEvent>({
  kind: 'mcpServer',
  version: 1,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: () => ({ isOpened: false, approved: {}, proposed: {} }),
  decide: { see, open, keep, approve, hide },
  evolve,
  query: { definitions: (state) => state },
});

export function digestOf(text: string): string {
  return hash('sha256', text, 'base64url');
}

function see(
  state: McpServerState,
  { name, text }: SeeTool,
  { nowMs }: Turn,
): Outcome<McpServerEvent, SeenTool> | Refusal {
  const [approved, proposal] = [ownOf(state.approved, name), ownOf(state.proposed, name)];
  // A proposal stays: of several machines behind one address some may have the approved definition, and some the other.
  if (approved === text) return { reply: { state: 'approved', isFound: false } };
  const waiting = approved === undefined ? 'new' : 'changed';
  if (proposal?.text === text)
    return { reply: { state: proposal.isHidden ? 'hidden' : waiting, isFound: false } };
  const names = new Set([...Object.keys(state.approved), ...Object.keys(state.proposed), name]);
  if (names.size > DEFINITIONS_MAX || charactersOf(state) + text.length > CHARACTERS_MAX)
    return refuse('InvalidInput', 'too many definitions');
  if (!state.isOpened && approved === undefined)
    return { events: [{ type: 'approved', name, text }], reply: { state: 'approved', isFound: false } };
  return {
    events: [{ type: 'proposed', name, text, utcMs: nowMs }],
    reply: { state: waiting, isFound: true },
  };
}

function open({ isOpened }: McpServerState): Outcome<McpServerEvent> {
  return { events: isOpened ? [] : [{ type: 'opened' }], reply: null };
}

function keep(_: McpServerState, { names }: KeepTools): Outcome<McpServerEvent> {
  return { events: [{ type: 'kept', names }], reply: null };
}

function approve(state: McpServerState, command: ApproveTool, turn: Turn): Outcome<McpServerEvent> | Refusal {
  const { name, digest } = command;
  const text = ownOf(state.proposed, name)?.text;
  if (text === undefined || digestOf(text) !== digest)
    return refuse('NotFound', 'no such definition waits: it may have changed since');
  return {
    events: [{ type: 'approved', name, text }],
    audit: [recordOf('mcp_tool_approved', command, turn)],
    reply: null,
  };
}

/** Hides a definition, also an approved one. */
function hide(state: McpServerState, command: HideTool, turn: Turn): Outcome<McpServerEvent> | Refusal {
  const { name, digest } = command;
  const found = [ownOf(state.proposed, name)?.text, ownOf(state.approved, name)];
  const text = found.find((each) => each !== undefined && digestOf(each) === digest);
  if (text === undefined) return refuse('NotFound', 'no such definition: it may have changed since');
  return {
    events: [{ type: 'hidden', name, text, utcMs: turn.nowMs }],
    audit: [recordOf('mcp_tool_hidden', command, turn)],
    reply: null,
  };
}

function recordOf(
  event: 'mcp_tool_approved' | 'mcp_tool_hidden',
  { server, name, digest, by, from }: JudgeTool,
  { nowMs }: Turn,
): AuditRecord {
  return { utcMs: nowMs, event, userId: by, fields: { server, name, digest, ...from } };
}

function evolve(state: McpServerState, event: McpServerEvent): McpServerState {
  const { approved, proposed } = state;
  switch (event.type) {
    case 'approved':
      return {
        ...state,
        approved: { ...approved, [event.name]: event.text },
        proposed: without(proposed, event.name),
      };
    case 'proposed':
    case 'hidden': {
      const { name, text, utcMs, type } = event;
      const kept = type === 'hidden' && approved[name] === text ? without(approved, name) : approved;
      const proposal = { text, sinceMs: utcMs, isHidden: type === 'hidden' };
      return { ...state, approved: kept, proposed: { ...proposed, [name]: proposal } };
    }
    case 'kept':
      return { ...state, approved: only(approved, event.names), proposed: only(proposed, event.names) };
    case 'opened':
      return { ...state, isOpened: true };
  }
}

function charactersOf({ approved, proposed }: McpServerState): number {
  const texts = [...Object.values(approved), ...Object.values(proposed).map(({ text }) => text)];
  return texts.reduce((sum, text) => sum + text.length, 0);
}

/** Names come from outside: `constructor` is one. */
function ownOf<Value>(rows: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(rows, name) ? rows[name] : undefined;
}

function without<Value>(
  rows: Readonly<Record<string, Value>>,
  name: string,
): Readonly<Record<string, Value>> {
  const { [name]: _, ...others } = rows;
  return others;
}

function only<Value>(
  rows: Readonly<Record<string, Value>>,
  names: readonly string[],
): Readonly<Record<string, Value>> {
  const wanted = new Set(names);
  return Object.fromEntries(Object.entries(rows).filter(([name]) => wanted.has(name)));
}
