/** The package that `npm pack` makes: its content, its size with its dependencies, and a start from it. */
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import t from 'tap';
import { request } from '../../kit/agent.ts';
import { launchFor, plainEnvironment } from '../../kit/launch.ts';
import { outputOf } from '../../kit/run-sync.ts';

t.setTimeout(120_000);

/** Installed size with the dependencies of a run, in bytes. */
const INSTALLED_MAX_BYTES = 90 * 1000 * 1000;

interface LockEntry {
  readonly version: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const lock = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  version: string;
  packages: Record<string, LockEntry>;
};
/** Folders of the packages that a run needs and that this machine has. */
const needed = Object.entries(lock.packages)
  .filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true)
  .map(([path]) => path)
  .filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory());

/** The unpacked package; its only packages are those that a run needs. */
function install(folder: string): string {
  // `prepack` would remove the build that runs this test: what it writes beside that is written here.
  for (const tool of ['print-sbom', 'pack-connector'])
    outputOf(process.execPath, [`build/tools/packaging/${tool}.js`], { env: plainEnvironment() });
  const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder];
  outputOf('npm', args, { env: plainEnvironment() });
  outputOf('tar', ['-xzf', join(folder, `gatehouse-${manifest.version}.tgz`), '-C', folder]);
  const root = join(folder, 'package');
  for (const path of needed.filter((each) => each.lastIndexOf('node_modules/') === 0)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(resolve(path), join(root, path));
  }
  return root;
}

function sizeOf(path: string): number {
  const entry = lstatSync(path);
  if (!entry.isDirectory()) return entry.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

function filesBelow(folder: string, path = ''): string[] {
  return readdirSync(join(folder, path), { withFileTypes: true }).flatMap((entry) => {
    const below = join(path, entry.name);
    return entry.isDirectory() ? filesBelow(folder, below) : [below];
  });
}

const root = install(t.testdir());

t.test('package: version 0.2.0 or later, the same in the lock and in the changelog', async (t) => {
  t.equal(lock.version, manifest.version);
  t.match(
    readFileSync('CHANGELOG.md', 'utf8'),
    new RegExp(`^## ${manifest.version.replaceAll('.', '\\.')}\\b`, 'm'),
  );
});

// covers S135
t.test('package: holds the built program, pages and manuals, no tests, sources or bench', async (t) => {
  const files = filesBelow(root).filter((path) => !path.startsWith('node_modules'));
  t.same(
    [
      'build/src/main.cjs',
      'build/sbom.cdx.json',
      `build/connector/connector-${manifest.version}.tgz`,
      'src/web/home/main.js',
      'docs/operations.md',
      'README.md',
      'CHANGELOG.md',
      'LICENSE',
    ].filter((path) => !files.includes(path)),
    [],
  );
  t.same(
    files.filter((path) => /^(build\/)?(test|bench|tools)\/|\.(ts|cts|map|tsbuildinfo)$/.test(path)),
    [],
  );
  const installed = needed.filter((path) => !needed.some((other) => path.startsWith(`${other}/`)));
  const sizeBytes = [...installed, ...files.map((path) => join(root, path))].reduce(
    (sum, path) => sum + sizeOf(path),
    0,
  );
  t.ok(sizeBytes < INSTALLED_MAX_BYTES, `${sizeBytes} bytes installed`);
});

t.test('package: every link of its pages leads to a packed file', async (t) => {
  const files = filesBelow(root).filter((path) => !path.startsWith('node_modules'));
  const links = files
    .filter((path) => path.endsWith('.md'))
    .flatMap((page) =>
      [...readFileSync(join(root, page), 'utf8').matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(
        ([, link = '']) => ({ page, target: join(dirname(page), link) }),
      ),
    );
  t.ok(links.length > 50, `${links.length} links`);
  t.same(
    links.filter(({ target }) => statSync(join(root, target), { throwIfNoEntry: false }) === undefined),
    [],
  );
});

t.test('package: serves with the sandbox and every page without a package of development', async (t) => {
  const gateway = await launchFor(t, { checkout: root });
  t.type(gateway.sandbox, 'string');
  t.match(gateway.output().stdout, `Gatehouse ${manifest.version}`);
  for (const path of ['/', '/docs/swagger/', '/docs/openapi.json', '/ProxyAdmin', '/health'])
    t.equal((await request(`${gateway.url}${path}`)).status, 200, path);
  const health = (await request(`${gateway.internal}/health`)).json;
  t.match(health, { version: manifest.version, httpLibrary: /^uWebSockets\.js 20\.\d+\.\d+$/ });
});

t.test('package: npm start in the unpacked package compiles nothing', async (t) => {
  const args = ['run', '--silent', 'start', '--', '--check-config'];
  const env = plainEnvironment();
  t.match(outputOf('npm', args, { cwd: root, env }), /^configuration: no faults$/m);
});
