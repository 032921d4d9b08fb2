/** The runtime over the real engine: kills, and a journal that an earlier run of this version wrote. */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { account } from '../../../support/actors/account-kind.ts';
import { START_MS } from '../../../support/actors/actors.ts';
import { openAccounts } from '../../../support/actors/journal-writer.ts';
import { count } from '../../../support/depth.ts';
import { lacking } from '../../../support/programs/tools.ts';

t.setTimeout(120_000);

const WRITER = fileURLToPath(new URL('../../../support/actors/journal-writer.js', import.meta.url));
/** The sources' folder: fixtures are not copied into the build. */
const GOLDEN = fileURLToPath(new URL('../../../../../test/fixtures/journal-1', import.meta.url));
const KILLS = 5;
const TAKEOVERS = 4;

function scratch(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-durability-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

interface Written {
  /** Balance that each account acknowledged last. */
  readonly acknowledged: Map<string, number>;
  readonly exitCode: number | null;
  readonly errors: string;
}

/** Runs a writer until it has acknowledged so many turns, kills it, and returns what it acknowledged last. */
async function writeAndKill(
  directory: string,
  turns: number,
  under: string[] = [],
  onCount: (count: number) => void = () => undefined,
): Promise<Written> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name !== 'NODE_OPTIONS' && !name.startsWith('_TAPJS_')),
  );
  const [program = process.execPath, ...rest] = [...under, process.execPath, WRITER, directory];
  const child = spawn(program, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const acknowledged = new Map<string, number>();
  const errors: Buffer[] = [];
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  let count = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [word, id, balance] = line.split(' ');
    if (word !== 'acknowledged' || id === undefined) continue;
    acknowledged.set(id, Number(balance));
    count += 1;
    onCount(count);
    if (count === turns) child.kill('SIGKILL');
  }
  return { acknowledged, exitCode: await ended, errors: Buffer.concat(errors).toString() };
}

async function checkBalances(t: Test, directory: string, { acknowledged }: Written): Promise<void> {
  const system = await openAccounts(directory);
  for (const [id, balance] of acknowledged) {
    const { balance: present } = await system.query(account, id, { type: 'state' });
    // One deposit of each client may have been under way: written, and not yet acknowledged.
    t.ok(present === balance || present === balance + 1, `${id}: acknowledged ${balance}, there ${present}`);
  }
  await system.close();
}

// covers S149
t.test('durability: whatever was acknowledged before kill -9 is there, and not twice', async (t) => {
  const directory = scratch(t);
  for (let kill = 1; kill <= count(KILLS); kill += 1) {
    const written = await writeAndKill(directory, 150 * kill);
    t.ok(written.acknowledged.size > 0);
    await checkBalances(t, directory, written);
  }
});

// covers S140
t.test(
  'durability: two writers without a lock, the first ends with 70 and nothing acknowledged is lost',
  async (t) => {
    const directory = scratch(t);
    for (let round = 0; round < count(TAKEOVERS); round += 1) {
      const second: { written?: Promise<Written> } = {};
      const first = await writeAndKill(directory, 1_000_000, [], (count) => {
        if (count === 100) second.written = writeAndKill(directory, 300);
      });
      t.equal(first.exitCode, 70, first.errors);
      t.match(first.errors, /fatal another process has opened the journal/);
      const written = await second.written;
      if (written === undefined) throw new Error('the second writer never began');
      for (const [id, balance] of first.acknowledged) {
        const later = written.acknowledged.get(id);
        // An account that the second writer did not reach is read from the file.
        if (later === undefined) written.acknowledged.set(id, balance);
        else if (later <= balance) t.fail(`${id}: ${balance} was acknowledged, then ${later}`);
      }
      await checkBalances(t, directory, written);
    }
  },
);

// covers S155
t.test(
  'durability: an fdatasync that fails ends the run with 70 and takes nothing acknowledged along',
  { skip: lacking('strace', 'tracing') },
  async (t) => {
    const strace = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync,fsync'];
    const directory = scratch(t);
    const inject = ['-e', 'inject=fdatasync,fsync:error=EIO:when=30+'];
    const written = await writeAndKill(directory, 100_000, [...strace, ...inject]);
    t.equal(written.exitCode, 70, written.errors);
    t.match(written.errors, /fatal commit failed: Input\/output error/);
    t.ok(written.acknowledged.size > 0);
    await checkBalances(t, directory, written);
  },
);

// covers S175
t.test('golden journal: what version 1 wrote opens, with all its rows', async (t) => {
  const directory = scratch(t);
  cpSync(GOLDEN, directory, { recursive: true });
  const system = await openAccounts(directory, START_MS + 1_000);
  const one = await system.query(account, '1', { type: 'state' });
  t.equal(one.balance, 123);
  const again = await system.ask(
    account,
    '1',
    { type: 'deposit', amount: 3 },
    { idempotencyKey: 'golden-key' },
  );
  t.equal(again, 123, 'the reply of the first run');
  const known = { idempotencyKey: 'golden-key', fingerprint: 'later' };
  t.equal(await system.ask(account, '1', { type: 'deposit', amount: 3 }, known), 123, 'kept without one');
  t.equal(system.lookup('publicKey', 'golden-name'), 'owner-0');
  t.same(system.administration.metaGet('golden'), { tick: 5n });
  t.match(system.administration.auditPage(0, 10), [
    { seq: 1, ring: null, record: { event: 'golden', fields: { ok: true } } },
  ]);
  const { stored } = system.administration.export('account', '2');
  t.match(stored?.rows.at(-2)?.row, [1, [], [], [['golden-timer', START_MS + 60_000]]]);
  t.equal((await system.query(account, '2', { type: 'state' })).waiting.length, 1);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(await system.ask(account, '3', { type: 'deposit', amount: 1 }), 1);
  t.same((await system.query(account, '3', { type: 'state' })).received, ['golden-mail']);
  t.equal(await system.drain(1_000), true);
  await system.close();
});
