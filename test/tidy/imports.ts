/** Imports that a file may have: layers, one owner for each package, the contract client, no cycle. */
import { join } from 'node:path';
import { type Import, importsOf, type Sources } from './sources.ts';

/** Folders that wire the others together; they may import everything. */
const ENTRY_FOLDERS = ['main.cts', 'bootstrap', 'cli'];

/** Folders that each layer may import besides itself; `types` marks layers of which only types may be taken. */
const LAYERS: Record<string, { values: string[]; types: string[] }> = {
  domain: { values: [], types: [] },
  workers: { values: ['domain'], types: [] },
  actors: { values: ['domain'], types: ['workers'] },
  io: { values: ['domain', 'actors'], types: ['workers'] },
  config: { values: ['domain'], types: [] },
  sandbox: { values: ['domain'], types: [] },
};

/** Packages that one file (or one folder's file) alone may import within src. */
const journalFile = (name: string) => `src/actors/runtime/journal/${name}.ts`;

const OWNERS: Record<string, string[]> = {
  typebox: ['src/domain/schema.ts', 'src/domain/json-schema.ts'],
  piscina: ['src/workers/threads.ts'],
  '@noble/ed25519': ['src/workers/ed25519.ts'],
  '@simplewebauthn/server': ['src/workers/fido2.ts'],
  'crc-32': ['src/workers/crc32.ts'],
  '@node-rs/crc32': ['src/workers/crc32.ts'],
  pg: ['src/io/cluster/database.ts'],
  '@modelcontextprotocol/client': [
    ...['link', 'lists', 'personal-link', 'ways', 'stdio/connection'].map(
      (name) => `src/io/mcp/upstreams/${name}.ts`,
    ),
    'src/io/mcp/credentials/oauth.ts',
  ],
  lmdb: ['lmdb', 'backup', 'keys', 'owner', 'tables', 'pages/walk'].map(journalFile),
  msgpackr: [
    ...['owner', 'row-checksum', 'tables', 'pages/walk'].map(journalFile),
    'src/io/cluster/frames.ts',
  ],
  'uWebSockets.js': ['src/io/http/listen/library.ts', 'src/io/http/listen/server.ts'],
  koffi: [
    'src/io/http/listen/listening-sockets.ts',
    'src/bootstrap/data-directory.ts',
    'src/cli/process-end.ts',
  ],
  pino: ['src/io/observability/log.ts'],
  'prom-client': ['src/io/observability/metrics.ts', 'src/io/observability/process-metrics.ts'],
  'jsonc-parser': ['src/config/source.ts'],
  re2js: ['src/domain/linear-pattern.ts'],
  yaml: ['src/cli/openapi/documents.ts'],
  ws: ['src/io/http-client/module-socket.ts', 'src/sandbox/echo.ts'],
};

function layerOf(path: string): string {
  const folder = path.split('/')[1] ?? '';
  return path.startsWith('src/') && ENTRY_FOLDERS.includes(folder) ? 'entry' : folder;
}

export function layerFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    const layer = layerOf(path);
    const rule = LAYERS[layer];
    if (!path.startsWith('src/') || layer === 'entry') continue;
    if (rule === undefined) faults.push(`${path}: ${layer} is no layer of the architecture`);
    for (const { specifier, typeOnly } of importsOf(source)) {
      if (rule === undefined || !specifier.startsWith('.')) continue;
      const target = layerOf(join(path, '..', specifier));
      const allowed =
        target === layer || rule.values.includes(target) || (typeOnly && rule.types.includes(target));
      if (!allowed) faults.push(`${path}: ${layer} may not import ${target} (${specifier})`);
    }
  }
  return faults;
}

export function ownerFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    if (!path.startsWith('src/')) continue;
    for (const { specifier } of importsOf(source)) {
      const name = Object.keys(OWNERS).find((each) => specifier === each || specifier.startsWith(`${each}/`));
      if (name !== undefined && !OWNERS[name]?.includes(path))
        faults.push(`${path}: ${name} belongs to ${OWNERS[name]}`);
    }
  }
  return faults;
}

/** The kit serves tests, load tests and tools: it knows the program alone, and the program does not know it. */
export function kitFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    const home = path.split('/')[0] ?? '';
    for (const { specifier } of importsOf(source)) {
      if (!specifier.startsWith('.')) continue;
      const target = join(path, '..', specifier).split('/')[0] ?? '';
      const isAllowed =
        home === 'kit' ? ['kit', 'src'].includes(target) : !(home === 'src' && target === 'kit');
      if (!isAllowed) faults.push(`${path}: ${home} may not import ${target} (${specifier})`);
    }
  }
  return faults;
}

/** A package has no dependency: it imports Node's own modules and its own files. */
export function packageFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    const [home] = /^packages\/[\w-]+\/src\//.exec(path) ?? [];
    if (home === undefined) continue;
    for (const { specifier } of importsOf(source)) {
      const isOwn = specifier.startsWith('.') && join(path, '..', specifier).startsWith(home);
      if (!isOwn && !specifier.startsWith('node:')) faults.push(`${path}: a package imports ${specifier}`);
    }
  }
  return faults;
}

/** The client of the contract knows the contract alone: no import leads into the program, however far it goes. */
export function clientFaults(sources: Sources): string[] {
  const faults: string[] = [];
  const seen = new Set<string>();
  const reached = [...sources.keys()].filter((path) => path.startsWith('test/contract/'));
  for (const path of reached) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const { specifier } of importsOf(sources.get(path) ?? '')) {
      if (!specifier.startsWith('.')) continue;
      const target = join(path, '..', specifier);
      if (target.startsWith('src/')) faults.push(`${path}: the contract client reaches ${target}`);
      else reached.push(target);
    }
  }
  return faults;
}

/** Files that worker threads load, as the schema library takes 5 MiB of each. */
export function threadFaults(sources: Sources): string[] {
  const reached = reachedFrom(
    'src/workers/thread.ts',
    targetsOf(sources, (each) => !each.typeOnly),
  );
  return ['src/domain/schema.ts', 'src/domain/json-schema.ts']
    .filter((path) => reached.has(path))
    .map((path) => `src/workers/thread.ts: worker threads load ${path}`);
}

/** Import cycles in src, imports of types included: each group of files that reach each other. */
export function cycleFaults(sources: Sources): string[] {
  const targets = targetsOf(sources, () => true);
  const reached = new Map([...targets.keys()].map((path) => [path, reachedFrom(path, targets)]));
  const faults = new Set<string>();
  for (const [path, others] of reached) {
    if (!others.has(path)) continue;
    const group = [...others].filter((other) => reached.get(other)?.has(path)).sort();
    faults.add(`import cycle: ${group.join(', ')}`);
  }
  return [...faults];
}

/** The files of src that each file of src imports. */
function targetsOf(sources: Sources, counts: (each: Import) => boolean): Map<string, string[]> {
  const targets = new Map<string, string[]>();
  for (const [path, source] of sources) {
    if (!path.startsWith('src/')) continue;
    const relative = importsOf(source).filter((each) => each.specifier.startsWith('.') && counts(each));
    targets.set(
      path,
      relative.map(({ specifier }) => join(path, '..', specifier)),
    );
  }
  return targets;
}

function reachedFrom(path: string, targets: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [...(targets.get(path) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next) || !targets.has(next)) continue;
    reached.add(next);
    open.push(...(targets.get(next) ?? []));
  }
  return reached;
}
