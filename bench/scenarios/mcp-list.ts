/**
 * tools/list by verified MCP sessions, and get_info by browser sessions, against an empty uWS handler. The list is some
 * hundred times longer than the answer of that handler, so a second floor sends the same bytes as the list.
 */
import { expectOk, rpc } from '../../tools/agent.ts';
import { bearersOf, getInfo, listTools } from '../asks.ts';
import { startServer } from '../children.ts';
import { gatewayUnderLoad, makeAgents } from '../gateway.ts';
import type { Subject } from '../measure.ts';
import type { Bench, Scenario } from '../scenario.ts';

const LIST = 'tools/list';
const INFO = 'get_info';
export const EMPTY = 'empty uWS handler';
const SAME_BYTES = 'empty uWS handler, bytes of tools/list';
/** Accounts that share the connections, each with sessions of its own. */
const USERS = 64;

export const mcpList: Scenario = {
  name: 'mcp-list',
  summary: 'tools/list and get_info with a session against an empty uWS handler',
  targets: [
    { of: LIST, against: EMPTY, by: 'rate', atLeast: 0.6, row: 'tools/list against an empty uWS handler' },
    { of: INFO, against: EMPTY, by: 'rate', atLeast: 0.6, row: 'get_info against an empty uWS handler' },
  ],
  async run(bench) {
    const { url, pids } = await gatewayUnderLoad(bench);
    const people = await makeAgents(bench, url, bench.options.users || USERS);
    const bearers = await bearersOf(url, people);
    const list = listTools(url, bearers);
    const cookies = people.map(({ cookie }) => cookie);
    const subjects = [
      bench.subject(LIST, pids, () => ({ url, ...list })),
      bench.subject(INFO, pids, () => ({ url, ...getInfo(url, cookies) })),
    ];
    const answer = await listOf(url, bearers[0] ?? '');
    if (bench.invite('empty-uws')) {
      subjects.push(await floor(bench, EMPTY, list.requests[0] ?? '', []));
      subjects.push(await floor(bench, SAME_BYTES, list.requests[0] ?? '', [answer]));
    }
    const kib = (Buffer.byteLength(answer) / 1_024).toFixed(1);
    return {
      comparison: await bench.compare(subjects),
      notes: [
        `The answer of tools/list has ${kib} KiB, that of the empty handler 15 bytes: beside "${SAME_BYTES}" only the work differs, not the sending.`,
      ],
      figures: [{ name: 'answer of tools/list', unit: 'KiB', value: Number(kib) }],
    };
  },
};

async function listOf(url: string, bearer: string): Promise<string> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  return expectOk('tools/list', await rpc(url, bearer, message)).text;
}

/** An empty handler that gets the same requests. With an argument it answers that text. */
export async function floor(
  bench: Bench,
  name: string,
  sample: string,
  args: readonly string[],
): Promise<Subject> {
  const server = await startServer('empty', args);
  bench.afterwards(() => server.stop());
  const requests = [sample.replace(/\r\nHost: [^\r]*/, `\r\nHost: ${new URL(server.url).host}`)];
  return bench.subject(name, [server.pid], () => ({ url: server.url, requests, expect: '{' }));
}
