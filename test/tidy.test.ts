/**
 * House rules that no linter knows: layers, one owner per package, file length, what may not stand in the source.
 * Each rule is a function over file texts, so that a planted violation shows that it can fail.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { missingFromLock, withoutIntegrity } from '../tools/complete-lock.ts';
import { SUITES, suiteOf } from './suites/table.ts';

type Sources = ReadonlyMap<string, string>;

const LINES_MAX = 400;
/** Folders that wire the others together; they may import everything. */
const ENTRY_FOLDERS = ['main.cts', 'bootstrap', 'cli'];

/** What each layer may import beside itself; `types` marks layers of which only types may be taken. */
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
  piscina: ['src/workers/pool.ts'],
  '@noble/ed25519': ['src/workers/ed25519.ts'],
  '@simplewebauthn/server': ['src/workers/fido2.ts'],
  'crc-32': ['src/workers/crc32.ts'],
  '@node-rs/crc32': ['src/workers/crc32.ts'],
  lmdb: ['lmdb', 'backup', 'owner', 'tables', 'walk'].map(journalFile),
  msgpackr: ['row-checksum', 'tables', 'walk'].map(journalFile),
  'uWebSockets.js': ['src/io/http/server.ts'],
  koffi: ['src/io/http/listen/listening-sockets.ts', 'src/bootstrap/data-directory.ts'],
  undici: ['src/io/webhooks/sender.ts', 'src/io/files/storage/storage-server.ts'],
  pino: ['src/io/observability/log.ts'],
  'prom-client': ['src/io/observability/metrics.ts', 'src/io/observability/process-metrics.ts'],
  'jsonc-parser': ['src/config/load.ts'],
};

const FORBIDDEN: readonly { rule: string; pattern: RegExp; except: RegExp }[] = [
  { rule: 'no default export', pattern: /^export default /m, except: /^$/ },
  { rule: 'no console', pattern: /\bconsole\./, except: /^(bench|tools)\// },
  {
    rule: 'no process.env outside the configuration',
    pattern: /\bprocess\.env\b/,
    except: /^(src\/config\/load\.ts|src\/main\.cts|test\/|bench\/|tools\/)/,
  },
  {
    rule: 'no skipped or lone tests',
    pattern: /\b(t|tap|test)\.(skip|only)\(|\b(skip|only|todo): (true|'|"|`)/,
    except: /^$/,
  },
  { rule: 'no switched-off check', pattern: /@ts-(ignore|expect-error|nocheck)|biome-ignore/, except: /^$/ },
  { rule: 'no unfinished place', pattern: /\b(TODO|FIXME|XXX)\b/, except: /^$/ },
  { rule: 'no empty catch', pattern: /catch\s*(\([^)]*\))?\s*\{\s*\}/, except: /^$/ },
];

function read(folders: readonly string[]): Sources {
  const sources = new Map<string, string>();
  for (const folder of folders) {
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (
        entry.isFile() &&
        /\.(ts|cts)$/.test(entry.name) &&
        !/bench\/subjects\/peers\/.*node_modules/.test(path)
      ) {
        sources.set(path, readFileSync(path, 'utf8'));
      }
    }
  }
  return sources;
}

function layerOf(path: string): string {
  const folder = path.split('/')[1] ?? '';
  return path.startsWith('src/') && ENTRY_FOLDERS.includes(folder) ? 'entry' : folder;
}

interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

function importsOf(source: string): Import[] {
  const found: Import[] = [];
  for (const match of source.matchAll(/^(?:import|export)\s+(type\s)?[^'";]*?from\s+'([^']+)'/gm)) {
    found.push({ specifier: match[2] ?? '', typeOnly: match[1] !== undefined });
  }
  for (const match of source.matchAll(/^import\s+'([^']+)'/gm))
    found.push({ specifier: match[1] ?? '', typeOnly: false });
  for (const match of source.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g))
    found.push({ specifier: match[1] ?? '', typeOnly: false });
  return found;
}

function layerFaults(sources: Sources): string[] {
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

function ownerFaults(sources: Sources): string[] {
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

function lengthFaults(sources: Sources): string[] {
  const long = [...sources].filter(([path]) => path.startsWith('src/'));
  return long
    .map(([path, source]) => ({ path, lines: source.trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > LINES_MAX)
    .map(({ path, lines }) => `${path}: ${lines} lines, at most ${LINES_MAX}`);
}

function headerFaults(sources: Sources): string[] {
  return [...sources]
    .filter(([path, source]) => path.startsWith('src/') && !/^(#![^\n]*\n)?\/\*\*/.test(source))
    .map(([path]) => `${path}: starts without a comment that says what it owns`);
}

function forbiddenFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    for (const { rule, pattern, except } of FORBIDDEN) {
      if (!except.test(path) && path !== 'test/tidy.test.ts' && pattern.test(source))
        faults.push(`${path}: ${rule}`);
    }
  }
  return faults;
}

/** How often a property runs is the affair of test/support/depth.ts. */
function depthFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    if (!path.startsWith('test/') || /^test\/(support\/)?(depth|tidy)(\.test)?\.ts$/.test(path)) continue;
    const count = (pattern: RegExp) => source.match(pattern)?.length ?? 0;
    if (/\bnumRuns\b/.test(source)) faults.push(`${path}: sets numRuns`);
    else if (count(/\bfc\.assert\(/g) > count(/\bruns\(/g)) faults.push(`${path}: a property without runs()`);
  }
  return faults;
}

/** The client of the contract knows the contract alone: no import leads into the program, however far it goes. */
function clientFaults(sources: Sources): string[] {
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

const RULES = {
  layerFaults,
  ownerFaults,
  lengthFaults,
  headerFaults,
  forbiddenFaults,
  depthFaults,
  clientFaults,
};
const sources = read(['src', 'test', 'bench', 'tools']);

for (const [name, rule] of Object.entries(RULES)) {
  t.test(`tidy: ${name}: the tree holds to the rule`, async (t) => t.same(rule(sources), []));
}

t.test('tidy: a planted violation of each rule is found', async (t) => {
  const header = '/** Owns a thing. */\n';
  const planted: [keyof typeof RULES, string, string][] = [
    ['layerFaults', 'src/domain/a.ts', `${header}import { x } from '../io/x.ts';\n`],
    ['layerFaults', 'src/actors/a.ts', `${header}import { x } from '../workers/pool.ts';\n`],
    ['layerFaults', 'src/actors/runtime/a.ts', `${header}import type { x } from '../../io/x.ts';\n`],
    ['layerFaults', 'src/workers/a.ts', `${header}export { x } from '../actors/x.ts';\n`],
    ['layerFaults', 'src/io/a.ts', `${header}const x = await import('../sandbox/x.ts');\n`],
    ['layerFaults', 'src/sandbox/a.ts', `${header}import '../io/x.ts';\n`],
    ['layerFaults', 'src/config/load.ts', `${header}import { x } from '../actors/x.ts';\n`],
    ['layerFaults', 'src/helpers/a.ts', header],
    ['ownerFaults', 'src/io/a.ts', `${header}import { open } from 'lmdb';\n`],
    ['ownerFaults', 'src/domain/a.ts', `${header}import Type from 'typebox/schema';\n`],
    ['lengthFaults', 'src/io/a.ts', header + 'x;\n'.repeat(LINES_MAX)],
    ['headerFaults', 'src/io/a.ts', 'export const a = 1;\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'export default 1;\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'console.log(1);\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'process.env;\n'],
    ['depthFaults', 'test/a.test.ts', 'fc.assert(property, { numRuns: 5 });\n'],
    ['depthFaults', 'test/a.test.ts', 'fc.assert(one, runs());\nfc.assert(property);\n'],
    ['forbiddenFaults', 'test/a.test.ts', "t.skip('x');\n"],
    ['forbiddenFaults', 'test/a.test.ts', "t.only('x');\n"],
    ['clientFaults', 'test/contract/chapters/a.ts', "import type { x } from '../../../src/io/x.ts';\n"],
    ['forbiddenFaults', 'src/io/a.ts', '// @ts-ignore\n'],
    ['forbiddenFaults', 'src/io/a.ts', '// TODO\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'try { x(); } catch (e) {}\n'],
  ];
  for (const [rule, path, source] of planted) {
    t.equal(RULES[rule](new Map([[path, source]])).length, 1, `${rule}: ${source.split('\n').at(-2)}`);
  }
  const helped: [string, string][] = [
    ['test/contract/a.ts', "import { x } from '../support/x.ts';\n"],
    ['test/support/x.ts', "import { y } from '../../src/domain/y.ts';\n"],
  ];
  t.same(clientFaults(new Map(helped)), ['test/support/x.ts: the contract client reaches src/domain/y.ts']);
  t.same(clientFaults(new Map(helped.slice(1))), [], 'other tests may');
  t.same(
    layerFaults(new Map([['src/actors/a.ts', "import type { x } from '../workers/tasks.ts';\n"]])),
    [],
    'types of workers are free',
  );
});

t.test(
  'tidy: the lock holds every platform package of uWebSockets.js, and no download address',
  async (t) => {
    const text = readFileSync('package-lock.json', 'utf8');
    const lock = JSON.parse(text) as { packages: Parameters<typeof missingFromLock>[0] };
    t.same(missingFromLock(lock.packages), {});
    const { ['node_modules/@uwsjs/darwin-x64-18']: _taken, ...short } = lock.packages;
    t.same(Object.keys(missingFromLock(short)), ['@uwsjs/darwin-x64-18'], 'a missing one is found');
    t.notMatch(text, /"resolved": "http/);
  },
);

t.test(
  'tidy: every entry of the lock has its integrity, but those that the registry does not serve',
  async (t) => {
    const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Parameters<typeof withoutIntegrity>[0];
    };
    t.same(withoutIntegrity(lock.packages), []);
    const sound = 'sha512-'.concat('A'.repeat(86), '==');
    const planted = {
      '': {},
      'node_modules/lmdb': { version: '3.5.6' },
      'node_modules/tap/node_modules/@uwsjs/linux-x64-20': { version: '20.51.4', optional: true },
      'node_modules/pino': { version: '10.4.0', integrity: 'sha1-AAAA' },
      'node_modules/@uwsjs/win32-x64-18': { version: '20.51.4', optional: true, integrity: sound },
      'node_modules/@uwsjs/win32-x64-20': { version: '20.51.4' },
      'node_modules/@uwsjs/win32-x64-22': { version: '20.51.4', optional: true },
      'node_modules/undici': { version: '7.30.2', integrity: sound },
    };
    t.same(withoutIntegrity(planted), Object.keys(planted).slice(1, 6), 'planted violations are found');
  },
);

t.test('tidy: every test file belongs to a suite, and every suite has its file', async (t) => {
  const paths = [...sources.keys()].filter(
    (path) => path.endsWith('.test.ts') && !path.startsWith('test/suites/'),
  );
  const suites = new Map(paths.map((path) => [path, suiteOf(path.slice('test/'.length))]));
  t.same(
    paths.filter((path) => suites.get(path) === undefined),
    [],
  );
  t.same([...new Set(suites.values())].sort(), Object.keys(SUITES).sort(), 'no suite is empty');
  const started = [...sources].filter(([path]) => /^test\/suites\/.*\.test\.ts$/.test(path));
  t.same(
    started.map(([, source]) => /runSuite\('([^']+)'\)/.exec(source)?.[1]).sort(),
    Object.keys(SUITES).sort(),
  );
});

t.test('tidy: every dependency is pinned exactly', async (t) => {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Record<string, Record<string, string>>;
  for (const group of ['dependencies', 'devDependencies', 'overrides']) {
    for (const [name, version] of Object.entries(manifest[group] ?? {})) {
      t.match(version, /^(npm:@?[a-z/]+@)?[0-9]+\.[0-9]+\.[0-9]+$/, `${name} ${version}`);
    }
  }
});
