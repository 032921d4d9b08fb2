/** Rows put into a journal without a runtime. */
import {
  type Journal,
  type JournalTurn,
  type Operation,
  ofNoActor,
} from '../../../src/actors/runtime/journal/port.ts';
import { EVENTS_PARTITION } from '../../../src/actors/runtime/ownership.ts';

/** Resolves when the rows are on disk; rejects when the journal refuses one of them. */
export function commitRows(journal: Journal, operations: readonly Operation[]): Promise<void> {
  const names = new Map<string, string | undefined>();
  const turns = operations.map((operation) => turnOf(operation, journal, names));
  return new Promise((resolve, reject) => {
    journal.commit(turns, (error, judged) => {
      if (error !== undefined) reject(error);
      else if (judged?.verdicts.some((verdict) => verdict !== 0) === true)
        reject(new Error(`refused: ${judged.verdicts.join()}`));
      else resolve();
    });
  });
}

/** The turn that writes such a row. `names`: what the turns before it make of the indexes. */
function turnOf(operation: Operation, journal: Journal, names: Map<string, string | undefined>): JournalTurn {
  const operations = [operation];
  if (operation.op === 'append' || operation.op === 'snapshot')
    return { kind: operation.kind, id: operation.id, operations, claims: [] };
  if (operation.op !== 'index')
    return ofNoActor(operations, operation.op === 'metaOnce' ? undefined : EVENTS_PARTITION);
  const { index, key, owner } = operation;
  const name = `${index}\0${key}`;
  const replaces = names.has(name) ? names.get(name) : journal.lookup(index, key);
  names.set(name, owner ?? undefined);
  const claim = { index, key, owner, onConflict: 'InvalidInput' } as const;
  return { kind: 'claimer', id: '1', operations, claims: [{ ...claim, ...(replaces && { replaces }) }] };
}
