/**
 * The verdict on a turn: pure, and the only place that decides. Every node asks it with the same view at the same
 * position, so all of them decide alike: no clock, no setting and no limit is read here.
 */
import type { Claim } from '../actor.ts';
import { floorKey, KIND_VERSIONS_KEY, type MailKey, type Operation, VERDICT } from '../journal/port.ts';
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
}

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
  if (id !== '') return view.ownerOfPartition(Number(id)) === node ? VERDICT.applied : VERDICT.fenced;
  return operations.every((operation) => isOfAnyNode(operation, node)) ? VERDICT.applied : VERDICT.refused;
}

function isOfActor({ op }: Operation): boolean {
  return op === 'append' || op === 'snapshot';
}

/**
 * Messages, values of which the first wins, the id floor of the writer, the versions of kinds, which are its program's, and
 * removals of dead letters, from which nothing follows.
 */
function isOfAnyNode(operation: Operation, node: number): boolean {
  if (operation.op === 'meta') return operation.key === floorKey(node) || operation.key === KIND_VERSIONS_KEY;
  return operation.op === 'mail' || operation.op === 'metaOnce' || operation.op === 'deadRemove';
}

/** An actor's row follows its last one, a snapshot is of the last one, and a message is used up once. */
function judgeRows({ kind, id, operations }: EntryTurn, view: JudgeView): number {
  let last: number | undefined;
  for (const operation of operations) {
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
