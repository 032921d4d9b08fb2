/**
 * A process that opens journals, one for each line of standard input that names a folder, and answers each with a line
 * of JSON: what is there, and what is there after every actor has taken one more write. A journal that takes the process
 * along leaves its line unanswered.
 */
import { createInterface } from 'node:readline';
import { ACTORS, type Contents, ledger, openLedgers, readLedgers, startLedgers } from './ledgers.ts';

/** Above every operation of the writer. */
export const LATER_OPERATION = 1_000_000;
const DRAIN_MS = 5_000;

export interface Reading {
  readonly error?: string;
  readonly found?: Contents;
  readonly later?: Contents;
}

async function read(folder: string): Promise<Reading> {
  try {
    const journal = await openLedgers(folder);
    const found = readLedgers(journal);
    const system = startLedgers(journal);
    await Promise.all(
      ACTORS.map((id, index) =>
        system.ask(ledger, id, { type: 'apply', operation: LATER_OPERATION + index }),
      ),
    );
    await system.drain(DRAIN_MS);
    await system.close();
    const again = await openLedgers(folder);
    const later = readLedgers(again);
    await again.close();
    return { found, later };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

if (process.argv[1]?.endsWith('reader.js') === true) {
  for await (const folder of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await read(folder))}\n`);
  // A journal that could not be read whole leaves its actors behind, whose timers would keep the process.
  process.exit();
}
