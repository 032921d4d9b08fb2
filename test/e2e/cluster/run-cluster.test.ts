/** `npm run cluster`: one address for several nodes, of which one may be killed; nothing is left when it ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { type Answer, expectOk, logIn, request, signUp, untilHolds } from '../../../kit/agent.ts';
import { pickPort } from '../../../kit/free-port.ts';
import { plainEnvironment } from '../../../kit/launch.ts';
import { uploadAll } from '../../../kit/upload-client.ts';
import { readOptions } from '../../../tools/cluster/options.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';

t.setTimeout(240_000);

const MAIN = fileURLToPath(new URL('../../../tools/cluster/main.js', import.meta.url));

interface Run {
  readonly url: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly output: () => string;
  /** Resolves with the groups of the first match. */
  said(pattern: RegExp): Promise<string[]>;
}

async function startCluster(t: Test, ...args: readonly string[]): Promise<Run> {
  const port = await pickPort();
  const child = spawn(process.execPath, [MAIN, '--port', String(port), ...args], {
    env: plainEnvironment(),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  return {
    url: `http://localhost:${port}`,
    child,
    exited,
    output: () => output,
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const match = pattern.exec(output);
          if (match === null) return;
          child.stdout.off('data', check);
          resolve(match.slice(1));
        };
        child.stdout.on('data', check);
        void exited.then(() => reject(new Error(`it has ended: ${output}`)));
        check();
      }),
  };
}

/** Enough, also where one is to serve on. */
const TWO = ['--nodes', '2'];
const TABLE = /\n {2}a +(\d+) +in .*\n {2}b +(\d+) +in /;

async function whatRuns({ said }: Run) {
  const [database = '', socket = ''] = await said(/^Database {2}process (\d+), at socket:([^?]+)/m);
  const [log = ''] = await said(/^Logs +(\S+)/m);
  const nodes = (await said(TABLE)).map(Number);
  return { nodes, processes: [...nodes, Number(database)], folders: [dirname(socket), dirname(log)] };
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}

/** Asks as a client does that gets a Retry-After or whose connection was cut. The time-out of the test is the bound. */
async function untilAnswered(ask: () => Promise<Answer>): Promise<Answer> {
  let answer: Answer | undefined;
  await untilHolds(async () => {
    answer = await ask().catch((error: unknown) => {
      if (!(error instanceof TypeError)) throw error;
      return undefined;
    });
    if (answer?.status === 503 && answer.headers.get('retry-after') === null)
      throw new Error(`503 without Retry-After: ${answer.text}`);
    return answer !== undefined && answer.status !== 503;
  });
  if (answer === undefined) throw new Error('no answer');
  return answer;
}

postgresTest(
  'npm run cluster: a person stays logged in when a node is killed; it ends without a trace',
  async (t) => {
    const cluster = await startCluster(t, ...TWO);
    const { url, child, said } = cluster;
    const { nodes, processes, folders } = await whatRuns(cluster);
    const person = await signUp(url);
    const keys = () => request(`${url}/auth/v1/keys/user_keys`, { headers: { Cookie: person.cookie } });
    expectOk('keys', await keys());
    const bytes = Buffer.from('the bytes of a file');
    const { fileCode } = await uploadAll({ url, cookie: person.cookie }, bytes);
    const [first = 0] = nodes;
    process.kill(first, 'SIGKILL');
    await said(/\n {2}a +ended +out +0 of 256/);
    t.equal((await untilAnswered(keys)).status, 200, 'the session holds');
    t.equal((await untilAnswered(() => logIn(url, person.key))).status, 200, 'a log-in works');
    const file = await untilAnswered(() => request(`${url}/auth/v2/file/${fileCode}`));
    t.equal(file.text, String(bytes), 'a file is read at the node that is left');
    child.stdin?.write('r a\n');
    const [again = ''] = await said(/\n {2}a +ended[\s\S]*\n {2}a +(\d+) +in /);
    t.not(Number(again), first, 'the command starts it again');
    // A node whose restart has just begun ends too.
    child.stdin?.write('r b\nq\n');
    t.equal(await cluster.exited, 0, cluster.output());
    t.same([...processes, Number(again)].filter(runs), [], 'no process is left');
    t.same(folders.filter(existsSync), [], 'a node that starts late would have made its folder again');
  },
);

postgresTest('npm run cluster: Ctrl-C while a node starts again leaves no process', async (t) => {
  const cluster = await startCluster(t, ...TWO);
  const { processes, folders } = await whatRuns(cluster);
  cluster.child.stdin?.write('r a\n');
  await cluster.said(/\n {2}a +ended /);
  cluster.child.kill('SIGINT');
  t.equal(await cluster.exited, 0, cluster.output());
  t.same(processes.filter(runs), []);
  t.same(folders.filter(existsSync), [], 'a node that starts late would have made its folder again');
});

postgresTest('npm run cluster: when it is killed, nodes and database end by themselves', async (t) => {
  const cluster = await startCluster(t, ...TWO);
  const { processes, folders } = await whatRuns(cluster);
  t.teardown(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  t.same(processes.filter(runs), processes);
  cluster.child.kill('SIGKILL');
  await cluster.exited;
  // The time-out of the test is the bound.
  await untilHolds(() => !processes.some(runs));
  t.same(processes.filter(runs), []);
});

t.test('npm run cluster: a wrong option ends it with 64', async (t) => {
  for (const args of [['--nodes', '1'], ['--nodes', '9'], ['--port', 'x'], ['--unknown'], ['extra']])
    t.equal(readOptions(args), undefined, args.join(' '));
  t.same(readOptions([]), { nodes: 3, port: 8080 });
  t.same(readOptions(['--nodes', '8', '--port', '1']), { nodes: 8, port: 1 });
  const child = spawn(process.execPath, [MAIN, '--nodes', '1'], { env: plainEnvironment(), stdio: 'ignore' });
  t.equal(await new Promise((resolve) => child.once('close', resolve)), 64);
});
