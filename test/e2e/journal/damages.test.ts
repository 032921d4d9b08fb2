/**
 * Every named damage of a journal: `check` finds it, a start after a crash ends with one sentence where pages are damaged,
 * and no start and no run ends by anything but 70, or by a signal of the engine while it serves.
 */
import { appendFileSync, cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { logIn, type Person, request, signUp } from '../../../kit/agent.ts';
import { launch, NO_LIMITS, runToEnd } from '../../../kit/launch.ts';
import { openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import { checkJournalRows } from '../../../src/bootstrap/journal-check.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';
import { refusedStart } from '../../support/command.ts';
import { depth } from '../../support/depth.ts';
import { BIG_KEY, JOURNAL_DAMAGES, type JournalDamage, SMALL_KEY } from '../../support/journal-damages.ts';

t.setTimeout(1_200_000);

const PORTS = ['--port', '0', '--internal-port', '0'];
/** Starts and runs try one of so many damages, others each time: each costs a start of the program. */
const EACH = { full: 5, gate: 15, quick: 30 }[depth.depth];
const root = t.testdir({ original: {} });
const original = join(root, 'original');
const configuration = { Settings: NO_LIMITS };
const people: Person[] = [];

t.before(async () => {
  const gateway = await launch({ dataPath: original, configuration });
  for (let at = 0; at < 12; at += 1) people.push(await signUp(gateway.url));
  await gateway.stop();
  const journal = await openJournal({ directory: original, stepBytes: 1024 * 1024 });
  await commitRows(journal, [
    { op: 'meta', key: BIG_KEY, row: journal.pack({ bytes: Buffer.alloc(9_000, 1) }) },
  ]);
  await commitRows(journal, [{ op: 'meta', key: SMALL_KEY, row: journal.pack(1) }]);
  await journal.close();
});

function copyOf(name: string): string {
  const folder = join(root, name.replaceAll(/[^a-z0-9]+/gi, '-'));
  mkdirSync(folder);
  cpSync(original, folder, { recursive: true });
  return folder;
}

const oneIn = (each: number) => JOURNAL_DAMAGES.filter((_, at) => (at + depth.seed) % each === 0);
const chosen = oneIn(EACH);
/** Each check is a process: the gate has all of them. */
const checked = oneIn(depth.isQuick ? 3 : 1);

t.test('damages: there are no fewer than 52, each with a name of its own', async (t) => {
  const names = new Set(JOURNAL_DAMAGES.map(({ name }) => name));
  t.equal(names.size, JOURNAL_DAMAGES.length);
  t.ok(names.size >= 52, `${names.size}`);
});

t.test('damages: the journal without one has no finding', async (t) => {
  const findings: string[] = [];
  await checkJournalRows(original, false, (sentence) => findings.push(sentence));
  t.same(findings, []);
});

// covers S145
t.test('damages: check finds each', async (t) => {
  for (const { name, damage } of checked) {
    const folder = copyOf(name);
    damage(join(folder, 'data.mdb'));
    const findings: string[] = [];
    await checkJournalRows(folder, false, (sentence) => findings.push(sentence));
    t.ok(findings.length > 0, `${name}: ${findings[0]}`);
    t.notMatch(findings.join('\n'), /SIG/, `${name}: by no signal`);
  }
});

// covers S145
t.test(
  'damages: a start after a crash ends with 70 and one sentence, or serves where a row is damaged',
  async (t) => {
    // The first is a program of its own: it ends by no signal.
    let isProgram = true;
    for (const { name, damage, concerns } of chosen) {
      const folder = copyOf(`crash ${name}`);
      damage(join(folder, 'data.mdb'));
      appendFileSync(join(folder, 'gatehouse.lock'), 'served\n');
      if (concerns === 'row') {
        const gateway = await launch({ dataPath: folder, configuration });
        t.same(await gateway.stop(), { code: 0, signal: null }, name);
        continue;
      }
      const { code, stdout, stderr } = isProgram
        ? await runToEnd(['--data', folder, ...PORTS])
        : await refusedStart(folder);
      isProgram = false;
      t.same({ code, stdout }, { code: 70, stdout: '' }, name);
      t.match(stderr, /^gatehouse: the journal .* is damaged: .*; restore a backup[^\n]*\n$/, name);
    }
  },
);

t.test(
  'damages: while serving, a page ends the run with 70 and one line, or the requests beside it are answered',
  async (t) => {
    const signals: string[] = [];
    for (const { name, damage, concerns } of chosen) {
      if (concerns === 'head') continue;
      const end = await served(name, damage);
      if (end.signal !== null) signals.push(`${name}: ${end.signal}`);
      else if (end.code !== 0) {
        t.equal(end.code, 70, name);
        t.equal(end.fatal, 1, `${name}: one line`);
      }
      t.notMatch(end.statuses.join(), '500', name);
    }
    // A read of wild memory by the engine ends the process: it cannot be caught, and the next start is above.
    t.comment(signals.join('\n') || 'no signal');
  },
);

/** Damages the journal of a running gateway, uses what it has, and stops it. */
async function served(name: string, damage: JournalDamage['damage']) {
  const folder = copyOf(`serving ${name}`);
  const gateway = await launch({ dataPath: folder, configuration });
  damage(join(folder, 'data.mdb'));
  const statuses: number[] = [];
  const use = async (work: () => Promise<{ readonly status: number }>) => {
    const answer = await work().catch(() => undefined);
    if (answer !== undefined) statuses.push(answer.status);
  };
  for (const { cookie, key } of people) {
    await use(() => request(`${gateway.url}/auth/v1/keys/user_keys`, { headers: { Cookie: cookie } }));
    await use(() => logIn(gateway.url, key));
  }
  await signUp(gateway.url).catch(() => undefined);
  // Rejects where the engine ended the process.
  await gateway.stop().catch(() => undefined);
  const { code, signal } = await gateway.exited;
  const fatal = gateway
    .output()
    .stderr.split('\n')
    .filter((line) => line.includes('"level":"fatal"')).length;
  return { code, signal, fatal, statuses };
}
