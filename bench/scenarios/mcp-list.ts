/**
 * get_info by browser sessions against a uWS handler of equal work, and tools/list by verified MCP sessions against an
 * empty handler that sends as many bytes.
 */
import { expectOk, rpc } from '../../kit/agent.ts';
import { bearersOf, getInfo, listTools } from '../load/requests.ts';
import type { Subject } from '../measure/measure.ts';
import type { Bench, Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad, makeAgents } from '../subjects/gateway.ts';
import { EMPTY, EQUAL_WORK, equalWork, floor } from './floors.ts';

const LIST = 'tools/list';
const INFO = 'get_info';
const SAME_BYTES = 'empty uWS handler, bytes of tools/list';
/** Accounts that share the connections, each with sessions of its own. */
const USERS = 64;

export const mcpList: Scenario = {
  name: 'mcp-list',
  summary: 'tools/list and get_info with a session against uWS handlers of the same bytes and of equal work',
  baseline: true,
  targets: [{ of: INFO, against: EQUAL_WORK, by: 'rate', atLeast: 0.85, row: 'get_info against equal work' }],
  async run(bench) {
    const subjects: Subject[] = [];
    const kibOf = new Map<string, number>();
    for (const build of bench.builds) subjects.push(...(await listsOf(bench, build, kibOf)));
    return {
      comparison: await bench.compare(subjects),
      notes: [...kibOf].map(([name, kib]) => `The answer of ${name} has ${kib} KiB.`),
      figures: [...kibOf].map(([name, value]) => ({ name: `answer of ${name}`, unit: 'KiB', value })),
    };
  },
};

/** `kibOf` gets the size of the list by the name of its subject: two builds may have different tools. */
async function listsOf(bench: Bench, build: Build, kibOf: Map<string, number>): Promise<Subject[]> {
  const { url, pids } = await gatewayUnderLoad(bench, undefined, { build });
  const people = await makeAgents(bench, url, bench.options.users || USERS);
  const bearers = await bearersOf(url, people);
  const list = listTools(url, bearers);
  const cookies = people.map(({ cookie }) => cookie);
  const info = getInfo(url, cookies);
  const name = LIST + build.suffix;
  const answer = await listOf(url, bearers[0] ?? '');
  kibOf.set(name, Number((Buffer.byteLength(answer) / 1_024).toFixed(1)));
  const subjects: Subject[] = [
    bench.subject(name, pids, () => ({ url, ...list })),
    { ...bench.subject(INFO + build.suffix, pids, () => ({ url, ...info })), group: INFO },
  ];
  if (build.suffix !== '') return subjects;
  if (bench.optionalPeer('equal-work')) {
    const subject = await equalWork(bench, url, '/auth/v1/get_info', cookies[0] ?? '');
    subjects.push({ ...subject, group: INFO });
  }
  if (bench.optionalPeer('empty-uws')) {
    subjects.push({ ...(await floor(bench, EMPTY, info.requests[0] ?? '', [])), group: INFO });
    subjects.push(await floor(bench, SAME_BYTES, list.requests[0] ?? '', [answer]));
  }
  return subjects;
}

async function listOf(url: string, bearer: string): Promise<string> {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  return expectOk('tools/list', await rpc(url, bearer, message)).text;
}
