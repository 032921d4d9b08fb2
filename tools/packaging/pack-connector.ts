/**
 * `node build/tools/packaging/pack-connector.js` packs packages/connect for the gateway to serve, into build/connector. It does
 * nothing while the package there is newer than its sources.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from '../../kit/launch.ts';
import { outputOf } from '../../kit/run-sync.ts';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
const SOURCES = join(ROOT, 'packages/connect');
const FOLDER = join(ROOT, 'build/connector');

export function packConnector(): string {
  const { name, version } = JSON.parse(readFileSync(join(SOURCES, 'package.json'), 'utf8'));
  const path = join(FOLDER, `connector-${version}.tgz`);
  if (changedMs(path) > newestMs()) return path;
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  rmSync(join(SOURCES, 'dist'), { recursive: true, force: true });
  const { resolve: find } = createRequire(import.meta.url);
  const compiler = join(dirname(find('typescript/package.json')), 'bin/tsc');
  outputOf(process.execPath, [compiler, '-p', SOURCES], { stdio: 'inherit' });
  // Without `prepack`, which an `ignore-scripts` of the user would leave out.
  const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', FOLDER];
  outputOf('npm', pack, { cwd: SOURCES, env: withoutNpm(), stdio: ['ignore', 'ignore', 'inherit'] });
  renameSync(join(FOLDER, `${name}-${version}.tgz`), path);
  return path;
}

/** Options of the npm that runs this, such as its folder and `--dry-run`, are not for the npm that packs. */
function withoutNpm(): Record<string, string> {
  const kept = Object.entries(plainEnvironment()).filter(([name]) => !/^npm_/i.test(name));
  return Object.fromEntries(kept);
}

function newestMs(): number {
  const source = join(SOURCES, 'src');
  const files = readdirSync(source).map((name) => join(source, name));
  const others = ['package.json', 'README.md', 'tsconfig.json'].map((name) => join(SOURCES, name));
  return Math.max(...[...files, ...others].map(changedMs));
}

function changedMs(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) packConnector();
