/** Rows put into a journal without a runtime. */
import type { MemoryJournal } from '../../../kit/journal/memory.ts';
import { sessionIndex, sessionOwner } from '../../../src/actors/accounts/owners.ts';
import type { SessionRecord } from '../../../src/actors/accounts/user-types.ts';
import type { IndexName } from '../../../src/actors/runtime/actor.ts';
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

/** An account as an earlier version left it: its names in the indexes, its events, and its state as a snapshot. */
export interface StoredAccount {
  readonly version: number;
  readonly userId: string;
  readonly names: readonly (readonly [index: IndexName, key: string, owner: string])[];
  readonly events: readonly (readonly unknown[])[];
  readonly state: unknown;
}

/** Puts the account into a journal of today, as its snapshot or as its events. */
export function commitAccount(
  journal: MemoryJournal,
  { version, userId: id, names, events, state }: StoredAccount,
  form: 'snapshot' | 'events',
): Promise<void> {
  const row = (content: unknown[]) => journal.pack([version, ...content, [], []]);
  const rows: Operation[] = names.map(([index, key, owner]) => ({ op: 'index', index, key, owner }));
  if (form === 'snapshot')
    rows.push({ op: 'snapshot', kind: 'user', id, seq: 9, fromSeq: 1, row: row([9, state]) });
  else
    for (const [index, turn] of events.entries())
      rows.push({ op: 'append', kind: 'user', id, seq: index + 1, row: row([turn]) });
  return commitRows(journal, rows);
}

/** The names of an account's sessions in the indexes. */
export function sessionNames(userId: string, sessions: readonly SessionRecord[]): StoredAccount['names'] {
  return sessions.map(({ kind, hash, id: sessionId }) => [
    sessionIndex(kind),
    hash,
    sessionOwner({ userId, sessionId }),
  ]);
}
