/**
 * A process that writes durable turns to a journal on disk and says so: one line `acknowledged ID BALANCE` each, in
 * the order of the acknowledgements. The tests kill it. `journal-writer.js DIRECTORY golden` writes a small journal
 * that uses every table, and ends.
 */
import { randomBytes } from 'node:crypto';
import { openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import type { Asked } from '../../../src/actors/runtime/protocol.ts';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { type AccountProtocol, account } from './account-kind.ts';
import { START_MS } from './actors.ts';

const MIB = 1024 * 1024;
const CLIENTS = 16;

export async function openAccounts(directory: string, nowMs?: number): Promise<RunningSystem> {
  const journal = await openJournal({ directory, stepBytes: MIB });
  return createActorSystem({
    kinds: [account],
    journal,
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
    settings: new LiveSettings(),
    clock: () => nowMs ?? Date.now(),
    randomBytes,
    schedule: nodeSchedule,
    onFatal: (error) => {
      process.stderr.write(`fatal ${error.message}\n`);
      process.exit(70);
    },
    onBug: () => {},
  });
}

async function writeForEver(system: RunningSystem, id: string): Promise<void> {
  for (;;) {
    const balance = await system.ask(account, id, { type: 'deposit', amount: 1 });
    // A line that only waits in this process would be lost with it: the next turn begins when this one has left.
    await new Promise((resolve) => process.stdout.write(`acknowledged ${id} ${balance}\n`, resolve));
  }
}

/** Journal of the present version with rows in every table. */
async function writeGolden(system: RunningSystem): Promise<void> {
  const ask = (id: string, command: Asked<AccountProtocol>, key?: string) =>
    system.ask(account, id, command, key === undefined ? {} : { idempotencyKey: key });
  for (let count = 0; count < 60; count += 1) await ask('1', { type: 'deposit', amount: 2 });
  await ask('1', { type: 'deposit', amount: 3 }, 'golden-key');
  await ask('2', { type: 'claim', name: 'golden-name' });
  await ask('2', { type: 'remind', name: 'golden-timer', dueMs: START_MS + 60_000 });
  await ask('2', { type: 'queue' }).catch(() => {});
}

const [directory, mode] = process.argv.slice(2);
if (directory !== undefined && process.argv[1]?.endsWith('journal-writer.js') === true) {
  if (mode === 'golden') {
    const system = await openAccounts(directory, START_MS);
    // The last command waits for an answer that never comes; the rest is on disk before it.
    void writeGolden(system);
    setTimeout(async () => {
      system.audit({ utcMs: START_MS, event: 'settingChanged', userId: '1', fields: { ok: true } });
      await system.administration.metaPut('golden', { tick: 5n });
      const told = system.tell(account, '3', { type: 'receive', text: 'golden-mail' });
      await system.drain(0);
      await told;
      await system.close();
    }, 2_000);
  } else {
    const system = await openAccounts(directory);
    process.stdout.write('open\n');
    for (let client = 0; client < CLIENTS; client += 1) void writeForEver(system, String(client));
  }
}
