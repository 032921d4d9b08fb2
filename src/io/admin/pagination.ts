/** Shared by admin routes: the fresh login for changes, existing accounts, pages. The pipeline checks role and address. */
import { setImmediate } from 'node:timers/promises';
import { type AccountView, user } from '../../actors/accounts/user.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { boolean, int64, integer, object, optional } from '../../domain/schema.ts';
import { FRESH_LOGIN_MS, type SessionContext } from '../../domain/sessions.ts';
import { requireId } from '../accounts/login-parts.ts';
import type { RouteContext } from '../http/table/route.ts';

export const PAGE_ROWS = 100;
export const PAGE_ROWS_MAX = 1_000;

/** A page starts after the id `after`. A page with fewer rows than `limit` is the last. */
export const pageQuery = object({
  after: optional(int64('Id of the last row of the page before')),
  limit: optional(integer({ minimum: 1, maximum: PAGE_ROWS_MAX })),
  newest: optional(boolean({ description: 'True: the newest first' })),
});

/** Throws `FreshLoginRequired`. */
export function requireFresh({ nowMs, session }: RouteContext<unknown, unknown, SessionContext>): void {
  if (nowMs - session.createdMs > FRESH_LOGIN_MS) throw new GatewayError('FreshLoginRequired');
}

/** Throws `NotFound` for an account that was never opened. */
export async function requireAccount(actors: ActorSystem, userId: string): Promise<AccountView> {
  const account = await actors.query(user, userId, { type: 'account' });
  if (!account.exists) throw new GatewayError('NotFound', 'no such user');
  return account;
}

/** `after` is '' for the first page. */
export function readPage(
  query: { after?: string | number; limit?: number; newest?: boolean },
  rows = PAGE_ROWS,
): {
  after: string;
  limit: number;
  newest: boolean;
} {
  const { after, limit = rows, newest = false } = query;
  return { after: after === undefined ? '' : requireId(after, 'after'), limit, newest };
}

export interface RowPage<Row> {
  readonly rows: Row[];
  /** The id after which the next page begins; undefined after the last row. */
  readonly next: string | undefined;
}

/**
 * A page of items by the ids of a kind. Ids without an item (an account that was never opened, a removed application) are
 * skipped, and the page is filled from the ids after them, of which it looks at `idsMax`.
 */
export async function pageOf<Row>(
  { after, limit }: { after: string; limit: number },
  ids: (after: string, limit: number) => readonly string[],
  rowOf: (id: string) => Promise<Row | undefined>,
  idsMax = Number.POSITIVE_INFINITY,
): Promise<RowPage<Row>> {
  const rows: Row[] = [];
  let last = after;
  for (let left = idsMax; ; ) {
    const page = ids(last, limit);
    for (const id of page) {
      if (rows.length === limit || left === 0) return { rows, next: last };
      left -= 1;
      const row = await rowOf(id);
      if (row !== undefined) rows.push(row);
      last = id;
    }
    if (page.length < limit) return { rows, next: undefined };
    // Yields to other requests, because thousands of ids in a row may have no item.
    await setImmediate();
  }
}

/** The header `Link` (RFC 8288) to the page of the same query after `after`. */
export function nextLink(path: string, query: object, after: string): string {
  const fields = new URLSearchParams();
  for (const [field, value] of Object.entries({ ...query, after })) fields.set(field, String(value));
  return `<${path}?${fields}>; rel="next"`;
}
