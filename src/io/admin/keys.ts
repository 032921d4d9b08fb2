/**
 * Search in the keys of all accounts, a page at a time, with a bound on the accounts that a page reads. An active public
 * key is found by its index.
 */
import { setImmediate } from 'node:timers/promises';
import { parseKeyOwner } from '../../actors/accounts/owners.ts';
import { user } from '../../actors/accounts/user.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { UserKey } from '../../domain/keys.ts';

/** Accounts that one page reads; the page says where to continue. */
export const KEY_ACCOUNTS_MAX = 1_000;
/** Accounts read before the search yields to the event loop. */
const SLICE = 50;
/** Indexes of active keys: of software keys, and of credentials by their ids. */
const INDEXES = ['publicKey', 'credentialId'] as const;

/** Position after this key of the account; without a key, after all its keys. */
export interface KeyPosition {
  readonly userId: string;
  readonly keyId?: string;
}

export interface KeySearch {
  readonly userId: string | undefined;
  /** base64url, whole. */
  readonly publicKey: string | undefined;
  /** Removed keys too. */
  readonly deleted: boolean;
  readonly after: KeyPosition | undefined;
  readonly limit: number;
}

interface FoundKey {
  readonly userId: string;
  readonly key: UserKey;
}

export interface KeyPage {
  readonly rows: readonly FoundKey[];
  /** Position at which the next page begins; undefined after the last key. */
  readonly next: KeyPosition | undefined;
}

export interface KeySource {
  readonly actors: Pick<ActorSystem, 'lookup' | 'query'>;
  /** Account ids after one ('' from the start), ascending. */
  accountIds(after: string, limit: number): readonly string[];
}

/**
 * Lists keys in the order of account ids, and of creation within an account. Unreadable accounts are left out; the one
 * that a search names is `Quarantined`.
 */
export async function searchKeys(source: KeySource, search: KeySearch): Promise<KeyPage> {
  const { after, limit } = search;
  const named = namedAccounts(source, search);
  const rows: FoundKey[] = [];
  let last = after?.userId ?? '';
  // The previous page may have stopped within this account.
  let slice = named ?? (after?.keyId === undefined ? [] : [after.userId]);
  for (let left = KEY_ACCOUNTS_MAX; ; left -= slice.length) {
    for (const userId of slice) {
      for (const key of await keysOf(source, userId, search)) {
        if (rows.length === limit) return { rows, next: positionOf(rows.at(-1)) };
        rows.push({ userId, key });
      }
      last = userId;
    }
    if (named !== undefined) return { rows, next: undefined };
    if (left <= 0) return { rows, next: { userId: last } };
    slice = source.accountIds(last, Math.min(SLICE, left));
    if (slice.length === 0) return { rows, next: undefined };
    // Yields to other requests.
    await setImmediate();
  }
}

/** Undefined when every account must be read, because removed keys are in no index. */
function namedAccounts({ actors }: KeySource, search: KeySearch): readonly string[] | undefined {
  const { userId, publicKey, deleted } = search;
  if (userId !== undefined) return [userId];
  if (publicKey === undefined || deleted) return undefined;
  const holders = INDEXES.flatMap((index) => {
    const owner = actors.lookup(index, publicKey);
    return owner === undefined ? [] : [parseKeyOwner(owner).userId];
  });
  return [...new Set(holders)].sort();
}

async function keysOf({ actors }: KeySource, userId: string, search: KeySearch): Promise<UserKey[]> {
  const query = { type: 'keys' as const, removed: search.deleted };
  try {
    const keys = await actors.query(user, userId, query);
    return keys.filter((key) => fits(key, userId, search));
  } catch (error) {
    const isDamaged = error instanceof GatewayError && error.row === 'Quarantined';
    if (isDamaged && search.userId === undefined) return [];
    throw error;
  }
}

function fits(key: UserKey, userId: string, { publicKey, after }: KeySearch): boolean {
  if (publicKey !== undefined && key.publicKey !== publicKey) return false;
  if (after === undefined || userId > after.userId) return true;
  return userId === after.userId && after.keyId !== undefined && BigInt(key.id) > BigInt(after.keyId);
}

function positionOf(row: FoundKey | undefined): KeyPosition | undefined {
  return row === undefined ? undefined : { userId: row.userId, keyId: row.key.id };
}
