/** The suite against a gateway that the suite did not start: bounded, readable, and gone afterwards. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readMetric } from '../../bench/measure/metrics.ts';
import { type BenchReport, loadOf } from '../../bench/report/report.ts';
import { removeKeys, retryWhenLimited } from '../../bench/subjects/target-accounts.ts';
import { cookieOf, expectOk, logIn, mcpLogin, request, signUp, updateKey } from '../../kit/agent.ts';
import { launchFor, NO_LIMITS } from '../../kit/launch.ts';
import { suite } from './fixtures/bench.ts';

t.setTimeout(120_000);

const unlimited = await launchFor(t, { args: ['--sandbox'], configuration: { Settings: NO_LIMITS } });

t.test(
  'target: a run warns, keeps its bounds, reads the internal listener and leaves no session',
  async (t) => {
    const files = t.testdir({});
    const [json, html] = [join(files, 'run.json'), join(files, 'run.html')];
    const short = ['--duration', '0.3', '--warmup', '0.1', '--rounds', '2', '--max-rate', '60'];
    const target = ['--target', unlimited.url, '--internal', unlimited.internal];
    const { code, stdout, stderr } = await suite(
      'mcp-call',
      ...target,
      ...short,
      '--json',
      json,
      '--html',
      html,
    ).ended;
    t.equal(code, 0, stderr);
    t.match(stderr, `Load is sent to ${unlimited.url}: at most 60 requests a second. It must be yours`);
    t.match(stdout, '4 accounts were made');
    const report = JSON.parse(readFileSync(json, 'utf8')) as BenchReport;
    t.match(report, {
      schema: 3,
      command: /^npm run bench -- mcp-call --target/,
      gateway: { version: /^\d/, url: unlimited.url },
      machine: { cores: Number, cpu: String, memoryBytes: Number, kernel: String, node: process.version },
      generator: { ratePerSecond: Number, busy: Number },
    });
    const [scenario] = report.scenarios;
    t.match(scenario, {
      name: 'mcp-call',
      options: { connections: 8, users: 4 },
      targets: [],
      participants: [],
    });
    t.equal(scenario?.subjects.length, 1, 'nothing is compared');
    for (const round of scenario?.subjects[0]?.rounds ?? []) {
      const load = loadOf(round);
      t.ok(
        load !== undefined && load.answers > 0 && load.ratePerSecond <= 66,
        `${load?.ratePerSecond} a second`,
      );
      t.same(load?.errors, {});
      t.type(round.cpuMs, 'number', 'as the internal listener says');
      t.type(round.rssBytes, 'number');
    }
    t.same(
      [
        await readMetric(unlimited.internal, 'gatehouse_sessions', { scope: 'browser' }),
        await readMetric(unlimited.internal, 'gatehouse_sessions', { scope: 'mcp' }),
      ],
      [0, 0],
      'no session of the run is left',
    );
    t.match(readFileSync(html, 'utf8'), 'mcp-call');
  },
);

t.test('target: an interrupted run leaves no session either, and reports what it has', async (t) => {
  const json = join(t.testdir({}), 'run.json');
  // The check of the generator is as long as a round.
  const short = ['--duration', '0.3', '--warmup', '0.1', '--rounds', '300', '--max-rate', '60'];
  const args = ['--target', unlimited.url, '--users', '2', ...short, '--json', json];
  const { child, ended } = suite('mcp-call', ...args);
  child.stderr?.on('data', (text: string) => {
    if (text.includes('round 1')) child.kill('SIGINT');
  });
  t.equal((await ended).code, 130);
  const report = JSON.parse(readFileSync(json, 'utf8')) as BenchReport;
  t.match(report.scenarios[0], {
    failure: 'interrupted',
    notes: [/^2 accounts were made .* 4 sessions closed/],
  });
});

const limited = await launchFor(t, {
  args: ['--sandbox'],
  configuration: { Settings: { LastKeyProtection: 1 } },
});

t.test('target: limits of the gateway show by kind, with the settings that raise them', async (t) => {
  const short = ['--duration', '0.3', '--warmup', '0.1', '--rounds', '1', '--users', '1'];
  const { code, stdout } = await suite('mcp-call', '--target', limited.url, ...short).ended;
  t.equal(code, 0, 'errors are figures, not a failure');
  t.match(stdout, /\d+ x status 429/);
  t.match(stdout, 'SessionApiRPSLimit');
  t.match(stdout, '--internal URL');
});

t.test('target: what cannot run there is refused before anything is sent, with exit 64', async (t) => {
  const refused = await suite('upload-v2', '--target', 'http://127.0.0.1:9').ended;
  t.equal(refused.code, 64);
  t.match(refused.stderr, 'upload-v2 takes no --target: ');
  const silent = await suite('mcp-call', '--target', 'http://127.0.0.1:9').ended;
  t.equal(silent.code, 1);
  t.match(silent.stderr, 'http://127.0.0.1:9 does not answer');
});

t.test(
  'removeKeys: removes keys; where the last key must stay, closes its sessions and MCP access',
  async (t) => {
    const { url } = limited;
    const person = await retryWhenLimited(() => signUp(url));
    expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
    expectOk('mcp_login', await retryWhenLimited(() => mcpLogin(url, person.key, Date.now())));
    const left = await removeKeys(url, [person]);
    t.match(left, { accounts: 1, keysRemoved: 0, faults: [/^remove_key: HTTP 403/] });
    t.ok(left.sessionsClosed >= 2, `${left.sessionsClosed} sessions`);
    const headers = { Cookie: person.cookie };
    t.equal((await request(`${url}/auth/v1/sessions`, { headers })).status, 401);
    t.not((await mcpLogin(url, person.key, Date.now())).status, 200);
    t.not(
      cookieOf(await retryWhenLimited(async () => expectOk('login', await logIn(url, person.key)))),
      '',
      'the account stays',
    );
  },
);

t.test('retryWhenLimited: waits for Retry-After, and gives up after five attempts', async (t) => {
  const answers: number[] = [429, 503, 200];
  const waits: number[] = [];
  const step = async () => {
    const status = answers.shift() ?? 429;
    const headers = new Headers({ 'retry-after': '3' });
    return expectOk('step', { status, headers, text: '', json: {} as never });
  };
  const wait = async (durationMs: number) => void waits.push(durationMs);
  t.equal((await retryWhenLimited(step, wait)).status, 200);
  t.same(waits, [3_000, 3_000]);
  await t.rejects(retryWhenLimited(step, wait), { message: 'step: HTTP 429 ' });
  answers.push(500);
  await t.rejects(retryWhenLimited(step, wait), { message: 'step: HTTP 500 ' }, 'another refusal is final');
});
