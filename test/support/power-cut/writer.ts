/**
 * `writer.js FOLDER TURNS [early]`: asks actors for durable turns of every kind, prints `acknowledged ID OPERATION` after
 * each, then copies the journal and prints `copied`. The tests trace its system calls. `early`: prints before the journal
 * writes, which the tests must detect.
 */
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { copyJournal } from '../../../src/actors/runtime/journal/backup.ts';
import { makeFolders } from '../../../src/actors/runtime/journal/file.ts';
import type { DiskJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import { DamagedRow } from '../../../src/actors/runtime/journal/port.ts';
import type { RunningSystem } from '../../../src/actors/runtime/system.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { seededNumbers } from '../actors/actors.ts';
import type { LedgerRequest } from '../actors/ledger-kind.ts';
import { ACTORS, COPY, ledger, openLedgers, startLedgers } from './ledgers.ts';

const [folder = '', turns = '', fault] = process.argv.slice(2);
const NAMES = ['x', 'y', 'z'];
const DELAY_MAX_MS = 20;
const DRAIN_MS = 5_000;

class Client {
  readonly #system: RunningSystem;
  readonly #id: string;
  readonly #random: () => number;

  constructor(system: RunningSystem, id: string) {
    this.#system = system;
    this.#id = id;
    this.#random = seededNumbers(id.charCodeAt(0));
  }

  /** One operation after the other; the next begins when the last one was acknowledged or refused. */
  async run(next: () => number | undefined): Promise<void> {
    for (let operation = next(); operation !== undefined; operation = next()) {
      try {
        await this.#system.ask(ledger, this.#id, this.#command(operation));
        writeSync(1, `acknowledged ${this.#id} ${operation}\n`);
      } catch (error) {
        // The planted fault: an actor was read again before its last commit was written.
        if (fault === 'early' && error instanceof DamagedRow) return;
        if (!(error instanceof GatewayError)) throw error;
      }
    }
  }

  #command(operation: number): LedgerRequest {
    const dice = this.#random();
    const name = this.#pick(NAMES);
    const id = this.#id;
    if (dice < 0.3) return { type: 'apply', operation };
    if (dice < 0.55) return { type: 'send', operation, toId: this.#pick(ACTORS), how: 'receive' };
    if (dice < 0.7) return { type: 'take', operation, name, id };
    if (dice < 0.75) return { type: 'drop', operation, name, id };
    if (dice < 0.95) return { type: 'time', operation, name, delayMs: this.#random() * DELAY_MAX_MS };
    return { type: 'cancel', operation, name };
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item;
  }
}

/** The planted fault: a commit is acknowledged before it is durable. Returns how to wait for the last commit. */
function acknowledgeEarly(journal: DiskJournal): () => Promise<void> {
  const commit = journal.commit.bind(journal);
  let last = Promise.resolve();
  journal.commit = (group, done) => {
    // One group early and no more: an actor that is read again would miss several.
    void last.then(() => setImmediate(() => done(undefined)));
    const written = () =>
      new Promise<void>((resolve, reject) => {
        commit(group, (error) => (error === undefined ? resolve() : reject(error)));
      });
    // The journal takes one group at a time.
    last = last.then(written);
  };
  return () => last;
}

let operation = 0;
// Twice: over a journal that is made, and over one that an earlier run has left.
for (const last of [Number(turns) / 2, Number(turns)]) {
  const journal = await openLedgers(folder);
  const written = fault === 'early' ? acknowledgeEarly(journal) : undefined;
  const system = startLedgers(journal);
  const next = () => (operation < last ? ++operation : undefined);
  await Promise.all(ACTORS.map((id) => new Client(system, id).run(next)));
  await system.drain(DRAIN_MS);
  await written?.();
  await system.close();
}
makeFolders(join(folder, COPY));
await copyJournal(folder, join(folder, COPY));
writeSync(1, 'copied\n');
