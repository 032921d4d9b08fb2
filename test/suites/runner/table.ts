/**
 * Suites of test files that run in one process. A process uses up to a second before its first test, most of it to load
 * modules; files that load the same modules share one (decision 0079).
 */

/** Name of a suite, and what the paths of its files below `test/` begin with. The longest beginning decides. */
export const SUITES: Readonly<Record<string, readonly string[]>> = {
  actors: ['actors/'],
  'actors-journal': ['actors/runtime/journal/'],
  'actors-log': ['actors/runtime/replication/'],
  bench: ['bench/'],
  // The run starts suites by name. Those of programs take longest, most of it waiting: none is much longer than the others,
  // so that four run to the end together.
  'browser-admin': ['e2e/pages/admin', 'e2e/pages/dashboard'],
  'browser-home': ['e2e/pages/', 'bench/page'],
  // Nodes that end, or whose database or links fail; the files of `cluster` share one cluster.
  'cluster-faults': [
    'e2e/cluster/differing-nodes',
    'e2e/cluster/fault-checks',
    'e2e/cluster/page',
    'e2e/cluster/rolling-restart',
    'e2e/cluster/start',
  ],
  'cluster-files': ['e2e/cluster/files', 'e2e/cluster/streams'],
  'cluster-takeovers': [
    'e2e/cluster/commands',
    'e2e/cluster/lost-rows',
    'e2e/cluster/run-cluster',
    'e2e/cluster/sockets',
    'e2e/cluster/takeovers',
  ],
  cluster: ['e2e/cluster/'],
  contract: ['contract/'],
  crashes: ['e2e/kill-loop'],
  'e2e-accounts': [
    'e2e/kills',
    // Minutes of processor time at full depth: beside the shorter files, not those of agents.
    'e2e/connect/cli-hosts',
    'e2e/events',
    'e2e/restarts',
    'e2e/secrets',
    'e2e/tour',
    'e2e/transport',
    'e2e/webhooks',
  ],
  'e2e-agents': [
    'e2e/connect/',
    'e2e/examples',
    'e2e/modules',
    'e2e/named-module',
    'e2e/personal-reads',
    'e2e/typed-client',
  ],
  'e2e-commands': ['e2e/commands', 'e2e/orphans', 'e2e/start'],
  'e2e-damages': ['e2e/damaged-journal', 'e2e/journal/damage'],
  'e2e-files': ['e2e/files/'],
  'e2e-journal': ['e2e/check', 'e2e/journal/', 'e2e/seal-key'],
  'e2e-mcp': ['e2e/mcp'],
  'e2e-observability': ['e2e/calls/', 'e2e/loop-budget/', 'e2e/observability/'],
  'e2e-program': ['e2e/'],
  'io-accounts': ['io/accounts/', 'io/admin/', 'io/apps/'],
  'io-cluster': ['io/cluster/', 'io/limits/'],
  'io-files': ['io/files/'],
  'io-http': ['io/http/'],
  'io-mcp': ['io/connect/', 'io/mcp/'],
  'io-modules': ['cli/', 'io/http-client/', 'io/modules/', 'io/proxy/', 'io/routes/', 'packages/'],
  'io-streams': ['io/'],
  project: [
    'bootstrap/',
    'config/',
    'docs/',
    'domain/',
    'evidence/',
    'packaging/',
    'sandbox/',
    'support/',
    'tidy',
    'workers/',
  ],
};

/** `path`: of a test file below `test/`. Undefined where no suite takes it. */
export function suiteOf(path: string): string | undefined {
  const fitting = Object.entries(SUITES).flatMap(([name, beginnings]) =>
    beginnings.filter((each) => path.startsWith(each)).map((each) => ({ name, length: each.length })),
  );
  return fitting.sort((a, b) => b.length - a.length)[0]?.name;
}

/**
 * Beginnings of the paths of files that a quick run leaves to the gate. Some start clusters, database servers and subjects
 * of a benchmark to show a tool, or what a page says of it. The others repeat kills, takeovers, restarts and damage of real
 * programs: a tenth of such a search finds little and still costs most of its starts.
 */
const LEFT_TO_GATE: readonly string[] = [
  'bench/clusters',
  'bench/target',
  'bench/upstreams',
  'e2e/cluster/differing-nodes',
  'e2e/cluster/lost-rows',
  'e2e/cluster/page',
  'e2e/cluster/rolling-restart',
  'e2e/cluster/run-cluster',
  'e2e/cluster/takeovers',
  'e2e/files/bucket-kills',
  'e2e/files/fleet',
  'e2e/journal/damage',
  'e2e/kill-loop',
  'e2e/restarts',
  'e2e/tour',
];

/** `path`: the same. */
export function isLeftToGate(path: string): boolean {
  return LEFT_TO_GATE.some((beginning) => path.startsWith(beginning));
}
