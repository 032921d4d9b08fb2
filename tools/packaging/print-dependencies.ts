/**
 * Prints docs/dependencies.md: every package that a run needs, with what it brings. Figures of a version are measured once,
 * when it is new to the page.
 */
import { lstatSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { outputOf } from '../../kit/run-sync.ts';
import { closureOf, readLock } from './lock.ts';

/** Reasons why each is here rather than code of our own, and when it is loaded. */
const PACKAGES: Readonly<Record<string, readonly [why: string, loaded: Loaded]>> = {
  '@modelcontextprotocol/client': [
    'Opens and lists other MCP servers; without `McpServers` it is not loaded',
    'first use',
  ],
  '@noble/ed25519': ['Strict Ed25519 checks where OpenSSL is lenient', 'thread'],
  '@node-rs/crc32': ['CRC-32 at the rate of the disk', 'thread'],
  '@simplewebauthn/server': ['Passkeys and hardware keys: CBOR, attestations, certificates', 'thread'],
  'crc-32': ['CRC-32 without native code: the last fallback, and the oracle of the tests', 'fallback'],
  htm: ['Pages without a build step: Preact and templates', 'browser'],
  'ipaddr.js': ['Parses addresses and ranges of both families', 'start'],
  'jsonc-parser': ['The configuration file with comments, and the line of each fault', 'start'],
  koffi: ['Calls flock and setsockopt, which Node does not have', 'start'],
  lmdb: ['The journal: transactions on disk, crash safe', 'start'],
  msgpackr: ['Rows of the journal, encoded by the version that we pin', 'start'],
  pg: ['PostgreSQL, which holds the log of a cluster; without `Cluster` it is not loaded', 'cluster'],
  pino: ['Log lines that do not delay answers', 'start'],
  piscina: ['Worker threads with a queue', 'start'],
  'prom-client': ['Metrics in the format of Prometheus, with 28 of the process and of Node.js', 'start'],
  re2js: ['Patterns of configured tools, in linear time for any text', 'first use'],
  'swagger-ui-dist': ['API explorer', 'browser'],
  typebox: ['Checks of JSON Schema, compiled', 'start'],
  uplot: ['Charts of the dashboard', 'browser'],
  'uWebSockets.js': ['HTTP server for Node 20 to 23', 'start'],
  'uWebSockets.js-next': [
    'HTTP server for Node 22 and 24 with glibc 2.38; the newest that loads is used',
    'start',
  ],
  yaml: ['OpenAPI documents in YAML; only `import-openapi` loads it', 'first use'],
  ws: ['WebSockets to modules: handshake, frames and masks of the client side', 'start'],
};

type Loaded = 'start' | 'first use' | 'thread' | 'fallback' | 'browser' | 'cluster';

interface Dependency {
  readonly name: string;
  readonly version: string;
  readonly licence: string;
  readonly why: string;
  readonly loaded: Loaded;
  /** Folders in node_modules: its own, and those of all that it needs on this machine. */
  readonly folders: readonly string[];
}

export const DEPENDENCIES_FILE = 'docs/dependencies.md';
/** Name, licence, reason and when it is loaded. */
const STATED_CELLS = 4;
const STARTS = 5;
const MEBIBYTE = 1024 * 1024;

/** Direct dependencies of a run, by the lock. Throws for one that `PACKAGES` does not explain. */
export function dependencies(): Dependency[] {
  const packages = readLock();
  return Object.keys(packages['']?.dependencies ?? {}).map((name) => {
    const [why, loaded] = PACKAGES[name] ?? [];
    const path = `node_modules/${name}`;
    const entry = packages[path];
    if (why === undefined || loaded === undefined || entry === undefined)
      throw new Error(`tools/packaging/print-dependencies.ts does not say why ${name} is needed`);
    const { version = '', license: licence = '' } = entry;
    return { name, version, licence, why, loaded, folders: closureOf([path], packages, isInstalled) };
  });
}

function isInstalled(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function sizeOf(path: string): number {
  const entry = lstatSync(path);
  if (!entry.isDirectory()) return entry.size;
  const names = readdirSync(path).filter((name) => name !== 'node_modules');
  return names.reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

/** Milliseconds to load it in a fresh process, the median of `STARTS`. */
function loadMs(name: string): number {
  const code = `const at = performance.now(); require(${JSON.stringify(name)}); process.stdout.write(String(performance.now() - at))`;
  const times = Array.from({ length: STARTS }, () =>
    Number(outputOf(process.execPath, ['-e', code], { cwd: realpathSync('.') })),
  );
  return times.sort((a, b) => a - b)[STARTS >> 1] ?? 0;
}

/** Returns the part of a row without figures. */
function statedOf({ name, version, licence, why, loaded }: Dependency): string {
  return `| \`${name}\` ${version} | ${licence} | ${why} | ${loaded} |`;
}

/** Figures of the page for this version; of a new one undefined. */
function figuresOf({ name, version }: Dependency, page: string): string | undefined {
  const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` ${version} |`));
  return row?.split(' | ').slice(STATED_CELLS).join(' | ');
}

function measured(dependency: Dependency): string {
  const sizeBytes = dependency.folders.reduce((sum, path) => sum + sizeOf(path), 0);
  const isLoaded = dependency.loaded === 'start' && dependency.name !== 'uWebSockets.js-next';
  const cost = isLoaded ? `${loadMs(dependency.name).toFixed(0)} ms` : '–';
  return `${dependency.folders.length - 1} | ${(sizeBytes / MEBIBYTE).toFixed(1)} MiB | ${cost} |`;
}

export function dependenciesPage(): string {
  const page = readFileSync(DEPENDENCIES_FILE, 'utf8');
  return [
    '# Dependencies of a run',
    '',
    `Generated by \`npm run generate\`; \`npm ls --omit=dev\` names no other. "Brings" counts the packages that it needs itself. Size and start cost were measured on linux-x64 with Node 20: the size with all that it brings, so that shared packages count twice; the cost is \`require\` in a fresh process, so that shared files count twice too. Of typebox the gateway loads a part.`,
    '',
    '| Package | Licence | Why | Loaded | Brings | Size | Start cost |',
    '|---|---|---|---|---|---|---|',
    ...dependencies().map((each) => `${statedOf(each)} ${figuresOf(each, page) ?? measured(each)}`),
    '',
    'Loaded: at the start; at its first use; in a worker thread; as a fallback of another package; by the browser alone; or by a node of a cluster.',
    '',
  ].join('\n');
}
