/**
 * The writes of a turn, worked out and packed before anything is changed: a value that cannot be stored, or an `evolve`
 * that throws, fails the turn and leaves no trace.
 */
import { type AnyOutcome, type Claim, Later, type Refusal } from './actor.ts';
import { auditOperation } from './audit/operation.ts';
import type { AskWaiter, Cell, Chain } from './cell.ts';
import { CLAIM_KEY_MAX_BYTES, checkName, ID_MAX_BYTES, KIND_MAX_BYTES } from './journal/plain-data.ts';
import type {
  Journal,
  JournalTurn,
  MailRow,
  Operation,
  RingEntry,
  SnapshotRow,
  TimerChange,
} from './journal/port.ts';
import type { Entry } from './mailbox.ts';
import { dueOf, type TimerList, timerPairs, withTimer } from './timer-list.ts';

interface TurnInput {
  readonly cell: Cell;
  readonly outcome: AnyOutcome;
  readonly chain: Chain;
  /** The caller that waits for the answer of this chain. */
  readonly waiter: AskWaiter | undefined;
  /** The answer, instead of the outcome's. */
  readonly refusal: Refusal | undefined;
  readonly journal: Journal;
  readonly nextMailSeq: () => number;
}

export interface PreparedTurn extends JournalTurn {
  readonly cell: Cell;
  readonly chain: Chain;
  readonly outcome: AnyOutcome;
  readonly refusal: Refusal | undefined;
  readonly state: unknown;
  readonly seq: number;
  readonly events: number;
  readonly ring: readonly RingEntry[];
  readonly timers: readonly TimerChange[];
  readonly mail: readonly MailRow[];
  readonly sizeBytes: number;
  /** The durable row that these writes remove. */
  readonly entry: Entry | undefined;
}

const NONE: readonly never[] = [];

export function prepareTurn(input: TurnInput): PreparedTurn {
  const { cell, outcome, refusal, chain, journal } = input;
  const events = outcome.events ?? NONE;
  let { state } = cell;
  for (const event of events) state = cell.kind.evolve(state, event);
  const operations: Operation[] = [];
  let sizeBytes = 0;
  const pack = (value: unknown) => {
    const packed = journal.pack(value);
    sizeBytes += journal.sizeBytes(packed);
    return packed;
  };
  const entry = chain.entry !== undefined && !keepsEntry(outcome) ? chain.entry : undefined;
  const ring = ringEntries(input);
  const timers: TimerChange[] = [];
  if (entry !== undefined) removeEntry(cell, entry, operations, timers);
  if (outcome.timers !== undefined) changeTimers(cell, outcome.timers, timers, operations, pack);
  let { seq } = cell;
  if (events.length > 0 || ring.length > 0 || timers.length > 0) {
    seq += 1;
    const row = pack([cell.kind.version, events, ring, timers]);
    operations.push({ op: 'append', kind: cell.kind.kind, id: cell.id, seq, row });
    if (outcome.erases === true) operations.push(erasure(cell, { state, seq, timers }, pack));
  }
  const mail: MailRow[] = [];
  for (const { toKind, toId, command } of outcome.send ?? NONE) {
    checkName('the kind of a receiver', toKind, KIND_MAX_BYTES);
    checkName('the receiver of a message', toId, ID_MAX_BYTES);
    const key = { toKind, toId, seq: input.nextMailSeq(), fromKind: cell.kind.kind, fromId: cell.id };
    mail.push({ ...key, command });
    operations.push({ op: 'mail', key, row: pack(command) });
  }
  for (const record of outcome.audit ?? NONE) operations.push(auditOperation(record, pack));
  const claims: readonly Claim[] = outcome.claims ?? NONE;
  for (const { index, key, owner } of claims) {
    checkName('the key of a claim', key, CLAIM_KEY_MAX_BYTES);
    operations.push({ op: 'index', index, key, owner });
  }
  const { kind, id } = cell;
  return {
    kind: kind.kind,
    id,
    operations,
    claims,
    cell,
    chain,
    outcome,
    refusal,
    state,
    seq,
    events: events.length,
    ring,
    timers,
    mail,
    sizeBytes,
    entry,
  };
}

/**
 * A turn that only starts slow work keeps its row, so that a crash repeats the work. The first turn of the chain that
 * writes, or the last one, removes it: exactly once on state, at least once for calls.
 */
function keepsEntry(outcome: AnyOutcome): boolean {
  if (outcome.next === undefined) return false;
  const { events, claims, send, timers } = outcome;
  return !(events?.length || claims?.length || send?.length || timers?.length);
}

function removeEntry(cell: Cell, entry: Entry, operations: Operation[], timers: TimerChange[]): void {
  const { source } = entry;
  if (source.type === 'mail') {
    operations.push({ op: 'mailRemove', key: source.key });
    return;
  }
  // Another turn may have set the name anew during the work; that row is not removed here.
  if (dueOf(cell.timers, source.key.name) !== source.key.dueMs) return;
  operations.push({ op: 'timerRemove', key: source.key });
  timers.push([source.key.name, null]);
}

function changeTimers(
  cell: Cell,
  wanted: NonNullable<AnyOutcome['timers']>,
  changes: TimerChange[],
  operations: Operation[],
  pack: (value: unknown) => unknown,
): void {
  const { kind, id } = cell;
  for (const timer of wanted) {
    const { name } = timer;
    checkName('the name of a timer', name, ID_MAX_BYTES);
    const present = presentDue(cell, changes, name);
    // The former one may be under way with its command: when it was due tells the two apart.
    const dueMs = timer.dueMs !== null && timer.dueMs === present ? timer.dueMs + 1 : timer.dueMs;
    if (present !== null) {
      operations.push({ op: 'timerRemove', key: { dueMs: present, kind: kind.kind, id, name } });
    } else if (dueMs === null) continue;
    if (timer.dueMs !== null && dueMs !== null) {
      const key = { dueMs, kind: kind.kind, id, name };
      operations.push({ op: 'timer', key, row: pack(timer.command) });
    }
    changes.push([name, dueMs]);
  }
}

/** Returns the time of a timer with the changes of this turn so far, Unix milliseconds; null when it is not set. */
function presentDue(cell: Cell, changes: readonly TimerChange[], name: string): number | null {
  for (let index = changes.length - 1; index >= 0; index -= 1) {
    const change = changes[index];
    if (change?.[0] === name) return change[1];
  }
  return dueOf(cell.timers, name) ?? null;
}

/** The snapshot that takes the place of all rows, this turn's included. */
function erasure(
  { kind, id, snapshotSeq, timers: before }: Cell,
  { state, seq, timers }: Pick<PreparedTurn, 'state' | 'seq' | 'timers'>,
  pack: (value: unknown) => unknown,
): Operation {
  const after = timers.reduce<TimerList | undefined>(withTimer, before);
  const row = pack([kind.version, seq, state, [], timerPairs(after)] satisfies SnapshotRow);
  return { op: 'snapshot', kind: kind.kind, id, seq, fromSeq: snapshotSeq + 1, row };
}

/** The replies that this turn gives to commands with an Idempotency-Key. */
function ringEntries({ cell, outcome, chain, waiter }: TurnInput): RingEntry[] {
  const entries: RingEntry[] = [];
  const add = (asker: AskWaiter | undefined, reply: unknown) => {
    const { key, fingerprint } = asker ?? {};
    if (key !== undefined) entries.push(fingerprint === undefined ? [key, reply] : [key, reply, fingerprint]);
  };
  for (const answer of outcome.answers ?? NONE) {
    if ('refusal' in answer) continue;
    const own = answer.commandId === chain.commandId;
    add(own ? waiter : cell.waiting?.get(answer.commandId), answer.reply);
  }
  if (waiter?.key === undefined || outcome.reply instanceof Later) return entries;
  if (outcome.answers?.some((answer) => answer.commandId === chain.commandId)) return entries;
  if (outcome.reply !== undefined || (outcome.next === undefined && !waiter.later)) {
    add(waiter, outcome.reply);
  }
  return entries;
}
