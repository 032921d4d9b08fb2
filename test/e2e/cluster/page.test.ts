/** The commands of docs/cluster.md, run as an operator would on three machines, from a gateway alone to a cluster and back. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Person, request, signUp, untilAvailable } from '../../../kit/agent.ts';
import { owner, type Postgres } from '../../../kit/cluster/postgres.ts';
import { pickPort } from '../../../kit/free-port.ts';
import { entryOf, launchFor, plainEnvironment, TIED } from '../../../kit/launch.ts';
import { runSync } from '../../../kit/run-sync.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { lacking } from '../../support/programs/tools.ts';

t.setTimeout(240_000);

const PAGE = readFileSync('docs/cluster.md', 'utf8');

function blocksOf(section: string): string[] {
  const [, text = ''] = new RegExp(`^## ${section}\\n([\\s\\S]*?)(?=^## )`, 'm').exec(PAGE) ?? [];
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
}

/**
 * The commands that a machine has: the program, and a service manager whose processes end with the test: their descriptor 3
 * is at its end then.
 */
const MACHINE = `
set -euo pipefail
gatehouse() { "$NODE" "$ENTRY" "$@" 3<&-; }
start() {
  "$NODE" --require "$TIED" "$ENTRY" serve --config "$MACHINE/etc/gatehouse.json" >"$MACHINE/log" 2>&1 &
  echo $! >"$MACHINE/pid"
  disown
  # Each question for the status takes a third of the processor time of a start.
  until grep -q '^listening' "$MACHINE/log"; do sleep 0.05; done
}
stop() { kill -TERM "$(cat "$MACHINE/pid")"; while kill -0 "$(cat "$MACHINE/pid")" 2>/dev/null; do sleep 0.05; done; }
systemctl() { case $1 in restart) stop; start ;; *) "$1" ;; esac; }
`;

class Machine {
  readonly name: string;
  readonly folder: string;
  readonly url: string;
  readonly #t: Test;
  readonly #configuration: Record<string, unknown>;

  static async create(t: Test, name: string): Promise<Machine> {
    return new Machine(t, name, [await pickPort(), await pickPort()]);
  }

  private constructor(t: Test, name: string, [port, internal]: readonly [number, number]) {
    this.#t = t;
    this.name = name;
    this.folder = temporaryFolder(t);
    this.url = `http://127.0.0.1:${port}`;
    mkdirSync(join(this.folder, 'etc'));
    const DataPath = join(this.folder, 'data');
    this.#configuration = { DataPath, Listen: { port }, Internal: { port: internal } };
  }

  configure(more: object): void {
    const file = join(this.folder, 'etc/gatehouse.json');
    writeFileSync(file, JSON.stringify({ ...this.#configuration, ...more }));
  }

  async run(block: string, environment: Record<string, string> = {}): Promise<string> {
    const script = block
      .replaceAll('/etc/gatehouse/gatehouse.jsonc', join(this.folder, 'etc/gatehouse.json'))
      .replaceAll('/var/lib/gatehouse', join(this.folder, 'data'))
      .replaceAll('sleep 1', 'sleep 0.1');
    const child: ChildProcess = spawn('bash', ['-c', `${MACHINE}${script}`], {
      env: plainEnvironment({
        ...environment,
        MACHINE: this.folder,
        NODE: process.execPath,
        ENTRY: entryOf(),
        TIED: TIED[1],
      }),
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    // Open until the end of the test: what was started lives as long.
    this.#t.teardown(() => child.stdio[3]?.destroy());
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const code = await new Promise((resolve) => child.once('exit', resolve));
    this.#t.equal(code, 0, `${this.name}: ${block.split('\n')[0]} ...\n${output}`);
    return output;
  }
}

const keysAt = async ({ url }: Pick<Machine, 'url'>, { cookie }: Person) =>
  (await request(`${url}/auth/v1/keys/user_keys`, { headers: { Cookie: cookie } })).status;

/** Configures nodes of one cluster, whose folder of files is at the first machine. */
function joinInto(machines: readonly Machine[], database: object): void {
  const LocalFileStoragePath = join(machines[0]?.folder ?? '', 'files');
  for (const machine of machines)
    machine.configure({
      LocalFileStoragePath,
      Cluster: { ...database, name: machine.name, sharedFiles: true },
    });
}

/** Machines a, which has served alone, and b, and a person that has signed up there. */
async function moveIn(t: Test, postgres: Postgres) {
  const [a, b] = [await Machine.create(t, 'a'), await Machine.create(t, 'b')];
  const database = { url: await postgres.createDatabase(), secret: randomBytes(32).toString('hex') };
  a.configure({});
  await a.run(
    'systemctl start gatehouse\nuntil gatehouse status --config /etc/gatehouse/gatehouse.jsonc; do sleep 0.1; done',
  );
  const person = await untilAvailable(() => signUp(a.url));
  joinInto([a, b], database);
  const [moving = ''] = blocksOf('Moving in');
  await a.run(moving);
  const [joining = ''] = blocksOf('A further node');
  t.match(await b.run(joining), /^b +\d+ +joined /m, 'it has joined');
  return { a, b, person, databaseUrl: database.url };
}

/** A dump of the database is restored: what came after it is gone. */
async function restored(t: Test, { a, b, person, databaseUrl }: Awaited<ReturnType<typeof moveIn>>) {
  const [, socket = '', name = '', user = ''] =
    /^socket:([^?]+)\?db=([^&]+)&user=(.+)$/.exec(databaseUrl) ?? [];
  const environment = { DATABASE: `host=${socket} dbname=${name} user=${user}` };
  const [dump = '', restore = ''] = blocksOf('Backup and restore').map((block) => `cd "$MACHINE"\n${block}`);
  await a.run(dump, environment);
  const later = await untilAvailable(() => signUp(a.url));
  await b.run('systemctl stop gatehouse');
  await a.run(restore, environment);
  t.equal(await keysAt(a, person), 200, 'an account from before');
  t.equal(await keysAt(a, later), 401, 'one that came later');
  await b.run('mv /var/lib/gatehouse /var/lib/gatehouse.before; systemctl start gatehouse');
}

/** Folder of the newest PostgreSQL of the system that has both server and clients, as Debian installs it. */
function serverFolder(): string | undefined {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).map(Number) : [];
  const folders = versions
    .sort((one, other) => other - one)
    .map((version) => join(root, String(version), 'bin'));
  const needed = ['initdb', 'pg_basebackup', 'pg_ctl', 'psql'];
  return folders.find((folder) => needed.every((name) => existsSync(join(folder, name))));
}

/** Servers on sockets of their own, each in a folder that has the name of its data folder. */
const SERVERS = `
pg_ctl() {
  local data; data=$(basename "$(printf '%s\\n' "$@" | sed -n 's/^--pgdata=//p')")
  command pg_ctl -o "-c listen_addresses= -c unix_socket_directories=$FOLDER/$data.socket" -l "$FOLDER/$data.log" "$@"
}
`;

/** A primary with an empty database, and a place for its standby. `url` leads to whichever the link `current` names. */
function startServers(t: Test) {
  const folder = temporaryFolder(t);
  const { uid, gid } = owner;
  if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
  const environment = {
    FOLDER: folder,
    PATH: `${serverFolder()}:${process.env['PATH']}`,
    PRIMARY: `host=${folder}/primary.socket user=postgres`,
    STANDBY: `host=${folder}/standby.socket user=postgres`,
    STANDBY_DATA: `${folder}/standby`,
  };
  const ran = (block: string) =>
    runSync('bash', ['-c', `set -euo pipefail\ncd "$FOLDER"\n${SERVERS}${block}`], {
      ...owner,
      env: plainEnvironment(environment),
    });
  const run = (block: string) => {
    const { status, stderr } = ran(block);
    t.equal(status, 0, `${block.split('\n')[0]} ...\n${stderr}`);
  };
  t.teardown(() =>
    ran('for each in primary standby; do pg_ctl --pgdata=$each --mode=immediate stop || true; done'),
  );
  run(
    'initdb --pgdata=primary --username=postgres --auth=trust --no-sync >log\n' +
      'mkdir primary.socket standby.socket; ln -s primary.socket current\n' +
      'pg_ctl --pgdata=primary --wait start; psql --dbname="$PRIMARY" --command="create database gatehouse"',
  );
  return { run, url: `socket:${folder}/current?db=gatehouse&user=postgres` };
}

postgresTest(
  'cluster page: a gateway moves in, a node joins, restarts and goes, and the last one moves out with the accounts',
  async (t, postgres) => {
    const moved = await moveIn(t, postgres);
    const { a, b, person } = moved;
    for (const machine of [a, b]) t.equal(await keysAt(machine, person), 200, `at ${machine.name}`);
    const [restarting = ''] = blocksOf('Rolling restart and upgrade');
    t.match(await a.run(restarting), /^healthy/m, 'it is back');
    t.equal(await keysAt(a, person), 200, 'with the accounts');
    await t.test(
      'cluster page: a restored backup has the accounts of its time',
      { skip: lacking('pg_dump 18') },
      (t) => restored(t, moved),
    );
    const [leaving = ''] = blocksOf('Taking a node out');
    t.match(await b.run(leaving), 'the node b is forgotten');
    const [exporting = ''] = blocksOf('Moving out');
    await a.run(exporting);
    const alone = await launchFor(t, { dataPath: `${join(a.folder, 'data')}.alone` });
    t.equal(await keysAt(alone, person), 200, 'without a cluster again');
  },
  { skip: lacking('bash') },
);

t.test(
  'cluster page: a promoted standby has every answered write, and the nodes find it by themselves',
  { skip: lacking('bash', 'PostgreSQL') },
  async (t) => {
    const servers = startServers(t);
    const [a, b] = [await Machine.create(t, 'a'), await Machine.create(t, 'b')];
    const database = { url: servers.url, secret: randomBytes(32).toString('hex') };
    joinInto([a, b], database);
    const [joining = ''] = blocksOf('A further node');
    for (const machine of [a, b]) await machine.run(joining);
    const [adding = '', promoting = '', waiting = ''] = blocksOf('Promoting a standby');
    servers.run(adding);
    const person = await untilAvailable(() => signUp(a.url));
    servers.run('pg_ctl --pgdata="$FOLDER/primary" --mode=immediate stop');
    servers.run(`${promoting}ln -sfn standby.socket "$FOLDER/current"`);
    for (const machine of [a, b]) {
      await machine.run(waiting);
      t.equal(await keysAt(machine, person), 200, `at ${machine.name}`);
    }
  },
);
