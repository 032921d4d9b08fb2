/** Nicknames of accounts beside their ids: of one, and of a page of rows. Read on this node, in a cluster from its replica. */
import { setImmediate } from 'node:timers/promises';
import { user } from '../../actors/accounts/user.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { nullable, text } from '../../domain/schema.ts';

/** Null: the account has chosen none, cannot be read, or was never opened. */
export const nicknameSchema = nullable(text({ examples: ['Ada'] }));

/** Accounts that are read before a page lets other requests go on. */
const SLICE = 50;

type Names = Pick<ActorSystem, 'exists' | 'now'>;

export function nicknameOf(actors: Names, userId: string): string | null {
  try {
    return actors.exists(user, userId) ? actors.now(user, userId, { type: 'nickname' }) : null;
  } catch (error) {
    // A list is shown without the name of an account that cannot be read.
    if (error instanceof GatewayError) return null;
    throw error;
  }
}

/**
 * The rows, each with the nickname of the account that `idOf` names, as the field `nickname` unless `field` names another.
 * An account is read once, however many rows it has; a page has at most 1,000 rows.
 */
export async function withNicknames<Row extends object, Field extends string = 'nickname'>(
  actors: Names,
  rows: readonly Row[],
  idOf: (row: Row) => string | null,
  field: Field = 'nickname' as Field,
): Promise<(Row & Record<Field, string | null>)[]> {
  const names = new Map<string, string | null>();
  for (const row of rows) {
    const id = idOf(row);
    if (id === null || names.has(id)) continue;
    names.set(id, nicknameOf(actors, id));
    if (names.size % SLICE === 0) await setImmediate();
  }
  return rows.map((row) => {
    const name = { [field]: names.get(idOf(row) ?? '') ?? null } as Record<Field, string | null>;
    return { ...row, ...name };
  });
}
