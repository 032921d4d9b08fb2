/** Ledger actors over a journal on disk, and what the journal holds of them, read without starting them. */
import { startBareSystem } from '../../../bench/subjects/turn.ts';
import { Cell } from '../../../src/actors/runtime/cell.ts';
import { type DiskJournal, openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import type { RunningSystem } from '../../../src/actors/runtime/system.ts';
import { type LedgerState, ledgerKind } from '../actors/ledger-kind.ts';

export const ACTORS = ['a', 'b', 'c', 'd', 'e', 'f'];
/** Folder of the writer's copy, within its journal's. */
export const COPY = 'copy';
/** So small that the file grows while turns are written. */
const STEP_BYTES = 128 * 1024;
const MANY = 10_000;

export const ledger = ledgerKind(
  () => Promise.reject(new Error('not asked for')),
  () => undefined,
);

export function openLedgers(directory: string): Promise<DiskJournal> {
  return openJournal({ directory, stepBytes: STEP_BYTES });
}

export function startLedgers(journal: DiskJournal): RunningSystem {
  return startBareSystem(ledger, journal);
}

export type Ledgers = Record<string, LedgerState>;

export interface Contents {
  readonly states: Ledgers;
  /** Signs of a turn that is only half there. */
  readonly faults: readonly string[];
}

/** Every row of every table, held against the states that the same turns made. */
export function readLedgers(journal: DiskJournal): Contents {
  const states: Ledgers = {};
  for (const id of ACTORS) {
    const cell = new Cell(ledger, id);
    cell.replay(journal);
    states[id] = cell.state as LedgerState;
  }
  const all = Object.entries(states);
  const waiting = ACTORS.flatMap((id) => journal.mail('ledger', id, 0, MANY)).map(operationOf);
  const received = all.flatMap(([, state]) => state.received);
  const sent = all.flatMap(([, state]) => state.sent);
  const timers = all.flatMap(([id, state]) =>
    Object.entries(state.timers).map(([name, operation]) => `${id} ${name} ${operation}`),
  );
  const timerRows = journal
    .timers(Number.MAX_SAFE_INTEGER, MANY)
    .map((row) => `${row.id} ${row.name} ${operationOf(row)}`);
  const names = all.flatMap(([id, state]) => state.names.map((name) => `${name} ${id}`));
  const indexed = names.filter((line) => {
    const [name = '', id] = line.split(' ');
    return journal.lookup('publicKey', name) === id;
  });
  const faults = [
    ...differences('mail', sent, [...waiting, ...received]),
    ...differences('timers', timers, timerRows),
    ...differences('names', names, indexed),
  ];
  if (journal.count('publicKey') !== names.length)
    faults.push(`names: ${journal.count('publicKey')} in the index`);
  for (const [id, state] of all)
    for (const list of [state.applied, state.received, state.fired])
      if (new Set(list).size !== list.length) faults.push(`${id}: twice: ${list.join(' ')}`);
  return { states, faults };
}

function operationOf({ command }: { readonly command: object }): number {
  return (command as { readonly operation: number }).operation;
}

function differences(what: string, one: readonly unknown[], other: readonly unknown[]): string[] {
  const [left, right] = [one, other].map((list) => list.map(String).sort().join(', '));
  return left === right ? [] : [`${what}: ${left} beside ${right}`];
}
