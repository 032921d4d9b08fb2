/**
 * A Chromium for tests and pictures: the one of GATEHOUSE_TEST_BROWSER, else the one that npm brought, unpacked once into a folder
 * beside the packages, else one of the PATH. Owns where it is found and how it is started.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { plainEnvironment } from './launch.ts';
import { PROGRAMS, runSync } from './run-sync.ts';

const NAMES = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome-headless-shell',
];
const MANIFEST = join(PROGRAMS, 'node_modules/@sparticuz/chromium/package.json');
/** The package's own launch arguments would switch web security and process isolation off. */
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

interface Executable {
  readonly path: string;
  /** Folder of the system libraries that it brings along. */
  readonly libraries?: string;
}

/** Rejects with the reason when there is none, or none that runs. */
export async function startBrowser(): Promise<Browser> {
  const { path, libraries } = findBrowser();
  const fault = faultOf(path, libraries);
  if (fault !== undefined) throw new Error(`the browser ${path} does not run: ${fault}`);
  return chromium.launch({ executablePath: path, args: ARGUMENTS, env: environmentOf(libraries) });
}

function findBrowser(): Executable {
  const named = process.env['GATEHOUSE_TEST_BROWSER'];
  if (named !== undefined) return { path: named };
  const brought = existsSync(MANIFEST) ? unpacked() : undefined;
  if (brought !== undefined && faultOf(brought.path, brought.libraries) === undefined) return brought;
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const candidates = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  // Some systems put a script there that only says how to install a browser.
  const installed = candidates.find((path) => existsSync(path) && faultOf(path) === undefined);
  if (installed !== undefined) return { path: installed };
  throw new Error(
    'no browser: set GATEHOUSE_TEST_BROWSER, put a Chromium on the PATH, or run npm run programs',
  );
}

/** Says why it does not run; undefined when it prints its version. */
function faultOf(path: string, libraries?: string): string | undefined {
  const { status, error, stderr } = runSync(path, ['--version'], {
    env: environmentOf(libraries),
  });
  return status === 0 ? undefined : (error?.message ?? stderr);
}

/**
 * Unpacks in a folder of its own that then takes its final name at once: two processes that start together never
 * execute what the other still writes (ETXTBSY).
 */
function unpacked(): Executable {
  const { version } = JSON.parse(readFileSync(MANIFEST, 'utf8')) as { version: string };
  const caches = join(PROGRAMS, 'node_modules/.cache');
  const folder = join(caches, `gatehouse-chromium-${version}`);
  if (!existsSync(folder)) {
    mkdirSync(caches, { recursive: true });
    const own = mkdtempSync(join(caches, 'gatehouse-chromium-'));
    try {
      unpackInto(own);
      renameSync(own, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
    } finally {
      rmSync(own, { recursive: true, force: true });
    }
  }
  const path = join(folder, 'chromium');
  return faultOf(path) === undefined ? { path } : { path, libraries: join(folder, 'al2023', 'lib') };
}

/** Unpacks in a process of its own: the package reads TMPDIR and changes its environment. */
function unpackInto(folder: string): void {
  const script = "import('@sparticuz/chromium').then((chromium) => chromium.default.executablePath())";
  const run = runSync(process.execPath, ['-e', script], {
    cwd: PROGRAMS,
    env: { ...plainEnvironment(), TMPDIR: folder, AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs20.x' },
  });
  if (run.status !== 0)
    throw new Error(`the browser of the package cannot be unpacked: ${run.error?.message ?? run.stderr}`);
}

function environmentOf(libraries: string | undefined): Record<string, string> {
  return plainEnvironment(libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries });
}
