/** Shared by admin routes: the fresh login for changes, existing accounts, pages. The pipeline checks role and address. */
import { setImmediate } from 'node:timers/promises';
import { type AccountView, user } from '../../actors/accounts/user.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { int64, integer, object, optional } from '../../domain/schema.ts';
import { FRESH_LOGIN_MS, type SessionContext } from '../../domain/sessions.ts';
import { requireId } from '../accounts/login-parts.ts';
import type { RouteContext } from '../http/table/route.ts';

/** Rows of a page. */
export const PAGE_ROWS = 100;
export const PAGE_ROWS_MAX = 1_000;

/** A page starts after the id `after`. A page with fewer rows than `limit` is the last. */
export const pageQuery = object({
  after: optional(int64('Id of the last row of the page before')),
  limit: optional(integer({ minimum: 1, maximum: PAGE_ROWS_MAX })),
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
  query: { after?: string | number; limit?: number },
  rows = PAGE_ROWS,
): {
  after: string;
  limit: number;
} {
  const { after, limit = rows } = query;
  return { after: after === undefined ? '' : requireId(after, 'after'), limit };
}

/**
 * A page of items by the ids of a kind. Ids without an item (an account that was never opened, a removed application) are
 * skipped, and the page is filled from the ids after them.
 */
export async function pageOf<Row>(
  { after, limit }: { after: string; limit: number },
  ids: (after: string, limit: number) => readonly string[],
  rowOf: (id: string) => Promise<Row | undefined>,
): Promise<Row[]> {
  const rows: Row[] = [];
  let last = after;
  for (;;) {
    const page = ids(last, limit);
    for (const id of page) {
      if (rows.length === limit) return rows;
      const row = await rowOf(id);
      if (row !== undefined) rows.push(row);
      last = id;
    }
    if (page.length < limit) return rows;
    // Yields to other requests, because thousands of ids in a row may have no item.
    await setImmediate();
  }
}
