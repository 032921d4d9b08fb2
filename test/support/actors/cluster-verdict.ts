/** Conditions at the end of a simulated history, when everything has come to rest. */
import { isDeepStrictEqual } from 'node:util';
import type { RuntimeProcess } from './cluster-runtime.ts';
import type { LedgerState } from './ledger-kind.ts';
import type { SimulatedProcess } from './simulated-cluster.ts';

/** An operation that a caller asked of an actor; its number is its place among all, from 1. */
export interface AskedOperation {
  readonly id: string;
  readonly acknowledged: boolean;
}

interface EndOfHistory {
  readonly processes: readonly SimulatedProcess<RuntimeProcess>[];
  readonly actors: readonly string[];
  readonly names: readonly string[];
  readonly asked: readonly AskedOperation[];
}

/** The promise that was not kept, or undefined. */
export function verdictOf({ processes, actors, names, asked }: EndOfHistory): string | undefined {
  const [first] = processes;
  if (first === undefined) return 'no process runs';
  const states = new Map<string, LedgerState>();
  for (const id of actors) {
    const state = first.app.storedStateOf(id);
    states.set(id, state);
    for (const { name, app } of processes) {
      // Without an answer while it waits for other nodes.
      const live = app.stateOf(id) ?? state;
      for (const seen of [app.storedStateOf(id), live])
        if (!isDeepStrictEqual(seen, state)) return `${name} has another state of ${id}`;
    }
  }
  return (
    verdictOfStates(states, asked) ?? verdictOfRows(first.app) ?? verdictOfNames(states, names, first.app)
  );
}

/** Checks that acknowledged operations are there, that nothing is there twice, and that every message has arrived. */
function verdictOfStates(
  states: ReadonlyMap<string, LedgerState>,
  asked: readonly AskedOperation[],
): string | undefined {
  for (const [id, { applied, received, fired, timers, dropped }] of states) {
    for (const list of [applied, received, fired]) {
      if (new Set(list).size !== list.length) return `${id} did something twice: ${list.join(' ')}`;
    }
    if (Object.keys(timers).length > 0) return `${id} still waits for ${JSON.stringify(timers)}`;
    const ghost = fired.find((operation) => dropped.includes(operation));
    if (ghost !== undefined) return `${id} fired ${ghost}, which was cancelled`;
  }
  for (const [index, { id, acknowledged }] of asked.entries()) {
    if (acknowledged && states.get(id)?.applied.includes(index + 1) !== true)
      return `${index + 1} was acknowledged by ${id} and is lost`;
  }
  const all = [...states.values()];
  const sorted = (list: readonly number[]) => [...list].sort((a, b) => a - b).join(' ');
  const sent = sorted(all.flatMap((state) => state.sent));
  const arrived = sorted(all.flatMap((state) => state.received));
  return sent === arrived ? undefined : `sent ${sent}, arrived ${arrived}`;
}

function verdictOfRows({ cluster }: RuntimeProcess): string | undefined {
  const { journal } = cluster;
  if (journal.dead(1).length > 0) return 'there are dead letters';
  if ([...journal.mailboxes()].length > 0) return 'mail is left over';
  if (journal.timers(Number.MAX_SAFE_INTEGER, 1).length > 0) return 'timers are left over';
  return undefined;
}

function verdictOfNames(
  states: ReadonlyMap<string, LedgerState>,
  names: readonly string[],
  { cluster }: RuntimeProcess,
): string | undefined {
  for (const name of names) {
    const owners = [...states].filter(([, state]) => state.names.includes(name)).map(([id]) => id);
    if (owners.length > 1) return `${name} belongs to ${owners.join(' and ')}`;
    const indexed = cluster.journal.lookup('publicKey', name);
    if (indexed !== owners[0]) return `${name} is indexed for ${String(indexed)}, owned by ${owners[0]}`;
  }
  return undefined;
}
