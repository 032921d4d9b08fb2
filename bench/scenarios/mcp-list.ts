/**
 * get_info by browser sessions against a uWS handler of equal work, and tools/list by verified MCP sessions against an empty
 * handler that sends as many bytes. A long list of other servers' tools against the same tools as rows.
 */
import { bearersOf, getInfo, listTools } from '../load/requests.ts';
import type { Subject } from '../measure/measure.ts';
import type { Bench, Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad, makeAgents } from '../subjects/gateway.ts';
import { listOf, listWith, rowsOf, startUpstreams } from '../subjects/upstreams.ts';
import { EMPTY, EQUAL_WORK, equalWork, floor } from './floors.ts';

const LIST = 'tools/list';
const INFO = 'get_info';
const SAME_BYTES = 'empty uWS handler, bytes of tools/list';
const MANY = 1_000;
const ROWS = 'tools/list, 1,000 rows';
const UPSTREAM = 'tools/list, 1,000 upstream tools';
/** Accounts that share the connections, each with sessions of its own. */
const USERS = 64;

export const mcpList: Scenario = {
  name: 'mcp-list',
  summary: 'tools/list and get_info with a session against uWS handlers of the same bytes and of equal work',
  baseline: true,
  targets: [
    { of: INFO, against: EQUAL_WORK, by: 'rate', reaches: 0.7, row: 'get_info against equal work' },
    { of: UPSTREAM, against: ROWS, by: 'processor time', reaches: 0.97, row: 'list of 1,000 upstream tools' },
  ],
  async run(bench) {
    const subjects: Subject[] = [];
    const kibOf = new Map<string, number>();
    for (const build of bench.builds) subjects.push(...(await listsOf(bench, build, kibOf)));
    if (bench.options.target === undefined) subjects.push(...(await longLists(bench, kibOf)));
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
  kibOf.set(name, kibIn(answer));
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

/** Two gateways with the same tools: of other servers, and as rows of the configuration. */
async function longLists(bench: Bench, kibOf: Map<string, number>): Promise<Subject[]> {
  const { servers, names } = await startUpstreams(bench, MANY);
  const endpoint = Object.values(servers)[0]?.url ?? '';
  const configurations = {
    [UPSTREAM]: { McpServers: servers },
    [ROWS]: { McpTools: rowsOf(names, endpoint) },
  };
  const subjects: Subject[] = [];
  for (const [name, configuration] of Object.entries(configurations)) {
    const { url, pids } = await gatewayUnderLoad(bench, undefined, { configuration });
    const bearers = await bearersOf(url, await makeAgents(bench, url, bench.options.users || USERS));
    kibOf.set(name, kibIn(await listWith(url, bearers[0] ?? '', names)));
    const { requests } = listTools(url, bearers);
    const expect = `"name":"${names.at(-1)}"`;
    subjects.push({ ...bench.subject(name, pids, () => ({ url, requests, expect })), group: UPSTREAM });
  }
  return subjects;
}

function kibIn(text: string): number {
  return Number((Buffer.byteLength(text) / 1_024).toFixed(1));
}
