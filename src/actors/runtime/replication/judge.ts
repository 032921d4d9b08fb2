/**
 * The verdict on a turn: pure, and the only place that decides. Every node asks it with the same view at the same
 * position, so all of them decide alike: no clock, no setting and no limit is read here.
 */

import { isDeepStrictEqual } from 'node:util';
import type { Claim } from '../actor.ts';
import { isEventRequest, isEventWrite } from '../journal/event-writes.ts';
import { floorKey, KIND_VERSIONS_KEY, type MailKey, type Operation, VERDICT } from '../journal/port.ts';
import { EVENTS_PARTITION } from '../ownership.ts';
import type { EntryClaim, EntryTurn } from './entry.ts';

/** The state at one position of the log. */
export interface JudgeView {
  isMember(node: number, incarnation: number): boolean;
  ownerOf(kind: string, id: string): number;
  /** Undefined for what is no partition. */
  ownerOfPartition(partition: number): number | undefined;
  /** Last row of an actor, 0 for one that has none. */
  lastSeq(kind: string, id: string): number;
  lookup(index: Claim['index'], key: string): string | undefined;
  hasMail(key: MailKey): boolean;
  /** Value of a key of metadata. */
  value(key: string): unknown;
}

const ANY_NODE: ReadonlySet<Operation['op']> = new Set([
  'mail',
  'metaOnce',
  'deadRemove',
  'eventAccept',
  'eventPublish',
]);

interface Writer {
  readonly node: number;
  readonly incarnation: number;
}

/** One of `VERDICT`. */
export function judge(turn: EntryTurn, { node, incarnation }: Writer, view: JudgeView): number {
  if (!view.isMember(node, incarnation)) return VERDICT.fenced;
  const { kind, id, claims } = turn;
  if (kind === '') return judgeOfNoActor(turn, node, view);
  if (view.ownerOf(kind, id) !== node) return VERDICT.fenced;
  const rows = judgeRows(turn, view);
  if (rows !== VERDICT.applied) return rows;
  return claims.length === 0 ? VERDICT.applied : judgeClaims(claims, view);
}

/** Rows of no actor: those of a partition are its owner's, and any member may write those that no other one can disturb. */
function judgeOfNoActor({ id, operations, claims }: EntryTurn, node: number, view: JudgeView): number {
  if (claims.length > 0 || operations.some(isOfActor)) return VERDICT.refused;
  if (id !== '') return judgeOfPartition(id, operations, node, view);
  return operations.every((operation) => isOfAnyNode(operation, node)) ? VERDICT.applied : VERDICT.refused;
}

/**
 * A value says which one it replaces, and what is written with it stands or falls with it: a former owner that comes back
 * writes over nothing that it has not seen.
 */
function judgeOfPartition(
  id: string,
  operations: readonly Operation[],
  node: number,
  view: JudgeView,
): number {
  if (view.ownerOfPartition(Number(id)) !== node) return VERDICT.fenced;
  for (const operation of operations) {
    const isOfAnother = isEventRequest(operation) && id !== String(EVENTS_PARTITION);
    if (isOfAnother || operation.op === 'meta') return VERDICT.refused;
    if (operation.op === 'metaOnce' && !isDeepStrictEqual(view.value(operation.key), operation.was))
      return VERDICT.stale;
  }
  return VERDICT.applied;
}

function isOfActor(operation: Operation): boolean {
  return operation.op === 'append' || operation.op === 'snapshot' || isEventWrite(operation);
}

/**
 * Messages, values of which the first wins, the id floor of the writer, the versions of kinds, which are its program's,
 * removals of dead letters, from which nothing follows, and events that come in: their numbers are given when they are applied.
 */
function isOfAnyNode(operation: Operation, node: number): boolean {
  if (operation.op === 'meta') return operation.key === floorKey(node) || operation.key === KIND_VERSIONS_KEY;
  return ANY_NODE.has(operation.op);
}

/** An actor's row follows its last one, a snapshot is of the last one, and a message is used up once. */
function judgeRows({ kind, id, operations }: EntryTurn, view: JudgeView): number {
  let last: number | undefined;
  for (const operation of operations) {
    if (isEventRequest(operation) || isEventWrite(operation)) return VERDICT.refused;
    if (operation.op === 'mailRemove' && !view.hasMail(operation.key)) return VERDICT.stale;
    if (operation.op !== 'append' && operation.op !== 'snapshot') continue;
    if (operation.kind !== kind || operation.id !== id) return VERDICT.refused;
    last ??= view.lastSeq(kind, id);
    if (operation.op === 'snapshot') {
      if (operation.seq !== last) return VERDICT.stale;
    } else {
      if (operation.seq !== last + 1) return VERDICT.stale;
      last = operation.seq;
    }
  }
  return VERDICT.applied;
}

/** Claims of one turn see the ones before them. */
function judgeClaims(claims: readonly EntryClaim[], view: JudgeView): number {
  const earlier = new Map<string, string | null>();
  for (const [position, claim] of claims.entries()) {
    const name = `${claim.index}\0${claim.key}`;
    const written = earlier.get(name);
    const present = written === undefined ? view.lookup(claim.index, claim.key) : (written ?? undefined);
    if (!isAllowed(claim, present)) return VERDICT.conflict + position;
    earlier.set(name, claim.owner);
  }
  return VERDICT.applied;
}

/** With `replaces` the stored value must be that one; a name already held by the same owner is never a conflict. */
export function isAllowed(claim: EntryClaim, present: string | undefined): boolean {
  if ((claim.owner ?? undefined) === present) return true;
  if (claim.replaces !== undefined) return present === claim.replaces;
  return claim.owner === null || present === undefined;
}
