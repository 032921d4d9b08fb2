/** The command `mcp-servers`: shows tools of other MCP servers that wait for a decision, and takes it, at a running gateway. */
import { parseFlags, UsageError } from '../config/load.ts';
import type { CommandAnswer, CommandRequest, McpServerView } from '../io/admin/mcp-servers.ts';
import { askFolder } from './folder-request.ts';
import { loadOrEnd, print } from './output.ts';

const JSON_FLAG = '--json';
const ACTIONS: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  async list(args) {
    const views = await ask(
      { action: 'list' },
      args.filter((each) => each !== JSON_FLAG),
    );
    print(args.includes(JSON_FLAG) ? `${JSON.stringify(views, null, 2)}\n` : listOf(views));
  },
  async diff([server, ...rest]) {
    const isNamed = rest[0] !== undefined && !rest[0].startsWith('--');
    const views = await ask({ action: 'list' }, isNamed ? rest.slice(1) : rest);
    const view = views.find(({ name }) => name === server);
    if (view === undefined) throw new UsageError('mcp-servers diff needs a server of the configuration');
    const wanted = view.hidden.filter(({ tool }) => !isNamed || tool === rest[0]);
    if (isNamed && wanted.length === 0) throw new UsageError(`no tool ${shown(rest[0] ?? '')} waits`);
    print(wanted.length === 0 ? 'no tool waits\n' : wanted.map((each) => diffOf(view.name, each)).join('\n'));
  },
  approve: (args) => decide('approve', args),
  hide: (args) => decide('hide', args),
};

/** Throws `UsageError`, and the errors of `askFolder`. */
export async function runMcpServers([action = '', ...args]: readonly string[]): Promise<void> {
  const run = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (run === undefined)
    throw new UsageError(`mcp-servers takes one action of ${Object.keys(ACTIONS).join(', ')}`);
  await run(args);
}

async function decide(action: 'approve' | 'hide', args: readonly string[]): Promise<void> {
  const [server, tool, digest, ...rest] = args;
  if (server === undefined || tool === undefined || digest === undefined)
    throw new UsageError(`mcp-servers ${action} needs SERVER TOOL DIGEST, as mcp-servers diff prints them`);
  const [view] = await ask({ action, server, tool, digest }, rest);
  print(view === undefined ? '' : listOf([view]));
}

async function ask(request: CommandRequest, flags: readonly string[]): Promise<readonly McpServerView[]> {
  const { dataPath } = loadOrEnd(parseFlags(flags));
  const answer = JSON.parse(
    await askFolder(dataPath, 'mcpServers', JSON.stringify(request)),
  ) as CommandAnswer;
  if (answer.error !== undefined) throw new UsageError(answer.error);
  return answer.servers;
}

function listOf(views: readonly McpServerView[]): string {
  if (views.length === 0) return 'no other MCP servers\n';
  return views
    .flatMap(({ name, state, reason, served, hidden, leftOut }) => [
      `${name}: ${state}${reason === null ? '' : ` (${shown(reason)})`}; tools: ${served.length} served, ${hidden.length} hidden, ${leftOut.length} left out`,
      ...hidden.map(({ tool, state: which, digest }) => `  ${which} ${tool} ${digest}`),
      ...leftOut.map((each) => `  left out ${shown(each.tool)}: ${shown(each.reason)}`),
    ])
    .map((line) => `${line}\n`)
    .join('');
}

/** Both definitions, line by line, and the command that approves the listed one. */
function diffOf(
  server: string,
  { tool, state, digest, approved, listed }: McpServerView['hidden'][number],
): string {
  const lines = [
    `${state} ${server} ${tool}`,
    ...changedLines(linesOf(approved), linesOf(listed)),
    `gatehouse mcp-servers approve ${server} ${tool} ${digest}`,
  ];
  return lines.map((line) => `${shown(line)}\n`).join('');
}

function linesOf(definition: string | null): readonly string[] {
  return definition === null ? [] : JSON.stringify(JSON.parse(definition), null, 2).split('\n');
}

/** Lines that both begin or end with are shown once; what is between is removed, then added. */
function changedLines(before: readonly string[], after: readonly string[]): string[] {
  let head = 0;
  while (head < before.length && before[head] === after[head]) head += 1;
  let tail = 0;
  const most = Math.min(before.length, after.length) - head;
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return [
    ...before.slice(0, head).map((line) => `  ${line}`),
    ...before.slice(head, before.length - tail).map((line) => `- ${line}`),
    ...after.slice(head, after.length - tail).map((line) => `+ ${line}`),
    ...before.slice(before.length - tail).map((line) => `  ${line}`),
  ];
}

/** Names and reasons come from servers: no character of theirs steers a terminal. */
function shown(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
