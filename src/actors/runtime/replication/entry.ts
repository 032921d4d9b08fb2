/** The form of a row of the shared log: a group of turns, or a change of the members. */
import type { Claim } from '../actor.ts';
import { isEventRequest } from '../journal/event-writes.ts';
import type { JournalTurn, Operation } from '../journal/port.ts';
import { createPackr } from '../journal/row-checksum.ts';
import type { MemberChange } from './members.ts';

/** Version of the form. A newer one stops the node: it would apply what it does not understand. */
export const ROW_VERSION = 2;
/**
 * Version of rows with requests of events, values of a partition or contact sync tokens: they are judged since then.
 */
export const EVENTS_ROW_VERSION = 2;
/** Version of rows that 0.2.0 applies as later ones do. */
const FIRST_VERSION = 1;

/** A claim without what its writer alone needs. */
export type EntryClaim = Pick<Claim, 'index' | 'key' | 'owner' | 'replaces'>;

/** A turn as it travels: writes of the indexes follow from its claims. */
export interface EntryTurn {
  readonly kind: string;
  readonly id: string;
  readonly operations: readonly Operation[];
  readonly claims: readonly EntryClaim[];
}

type RowContent =
  /** `newestId`: no id in them is above; 0 in a row of a version that did not say it. */
  | { readonly type: 'turns'; readonly turns: readonly EntryTurn[]; readonly newestId: bigint }
  | { readonly type: 'member'; readonly change: MemberChange }
  /** It cannot be read: every node passes over it alike. */
  | { readonly type: 'unreadable'; readonly reason: string };

/** A row that a newer version has written. */
export class EntryTooNew extends Error {
  constructor(version: number) {
    super(
      `a row of the log has version ${version}; this program knows ${ROW_VERSION}: install the newer version`,
    );
    this.name = 'EntryTooNew';
  }
}

const packr = createPackr();

export function encodeTurns(turns: readonly JournalTurn[], newestId: bigint): Uint8Array {
  const version = turns.some(isOfLaterVersion) ? EVENTS_ROW_VERSION : FIRST_VERSION;
  return packr.pack([version, 'turns', turns.map(entryTurn), newestId]);
}

function isOfLaterVersion({ kind, id, operations, claims }: JournalTurn): boolean {
  if (kind !== '') return claims.some(({ index }) => index === 'contactSync');
  return operations.some(
    (operation) => isEventRequest(operation) || (id !== '' && operation.op === 'metaOnce'),
  );
}

export function encodeMember(change: MemberChange): Uint8Array {
  return packr.pack([FIRST_VERSION, 'member', change]);
}

function entryTurn({ kind, id, operations, claims }: JournalTurn): EntryTurn {
  return {
    kind,
    id,
    operations: sentOf(kind, operations, claims.length > 0),
    claims: claims.map(({ index, key, owner, replaces }) =>
      replaces === undefined ? { index, key, owner } : { index, key, owner, replaces },
    ),
  };
}

function sentOf(kind: string, operations: readonly Operation[], hasClaims: boolean): readonly Operation[] {
  if (hasClaims) return operations.filter(({ op }) => op !== 'index');
  if (kind !== '') return operations;
  return operations.map((each) =>
    each.op === 'eventRelease' ? { op: 'eventRelease', arrival: each.arrival } : each,
  );
}

/** Throws `EntryTooNew`. */
export function decodeEntry(body: Uint8Array): RowContent {
  let decoded: unknown;
  try {
    decoded = packr.unpack(body);
  } catch (error) {
    return { type: 'unreadable', reason: String(error) };
  }
  const [version, type, content, newestId] = (Array.isArray(decoded) ? decoded : []) as readonly unknown[];
  if (typeof version === 'number' && version > ROW_VERSION) throw new EntryTooNew(version);
  if (type === 'turns' && Array.isArray(content))
    return { type, turns: content as EntryTurn[], newestId: idOf(newestId) };
  if (type === 'member' && typeof content === 'object' && content !== null)
    return { type, change: content as MemberChange };
  return { type: 'unreadable', reason: 'it is neither turns nor a change of the members' };
}

function idOf(value: unknown): bigint {
  if (typeof value === 'bigint') return value;
  return BigInt(Number.isSafeInteger(value) ? (value as number) : 0);
}
