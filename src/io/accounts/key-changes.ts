/** Changes of keys, shared by the routes of the owner (spec 4.3) and of the admin panel: same commands, same refusals. */

import { user } from '../../actors/accounts/user.ts';
import type { ClaimKey } from '../../actors/accounts/user-admin-keys.ts';
import type { RemovedKey, UpdatedKey } from '../../actors/accounts/user-keys.ts';
import type { Origin } from '../../actors/change.ts';
import type { ActorSystem, AskOptions } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { KeyFlag, type UserKey, withFlag } from '../../domain/keys.ts';
import { readId } from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { SECOND_MS } from '../../domain/time.ts';
import type { RouteContext } from '../http/table/route.ts';
import { askOptions } from './account.ts';
import { auditingKeyRefusals, holderOf, originOf, PUBLIC_KEY_BYTES, requireBytes } from './login-parts.ts';

type Context = RouteContext<unknown, unknown, SessionContext>;

/** Left out: unchanged. */
interface KeyAccess {
  readonly mcpAccess?: boolean;
  readonly cardDavAccess?: boolean;
  readonly browserLogin?: boolean;
}

interface NewClaim extends KeyAccess {
  /** base64url of 32 bytes. */
  readonly publicKey: string;
  readonly name?: string;
}

/**
 * Sets what a key may do. `ownerId` names the account when an admin changes it. Foreign, removed and unknown keys are all
 * `KeyNotFound`, so that answers do not tell whether a key exists.
 */
export function setKeyAccess(
  context: Context,
  keyId: string | number,
  { mcpAccess, cardDavAccess, browserLogin }: KeyAccess,
  ownerId?: string,
): Promise<UpdatedKey> {
  const flags = {
    ...(mcpAccess === undefined ? {} : { mcpAccess }),
    ...(cardDavAccess === undefined ? {} : { cardDavAccess }),
    ...(browserLogin === undefined ? {} : { browserLogin }),
  };
  return change(context, 'updateKey', keyId, ownerId, (userId, target, options) =>
    context.actors.ask(user, userId, { type: 'updateKey', ...flags, ...target }, options),
  );
}

/** Removes a key and ends its sessions before it resolves. `ownerId` and refusals as above. */
export function removeUserKey(
  context: Context,
  keyId: string | number,
  ownerId?: string,
): Promise<RemovedKey> {
  return change(context, 'removeKey', keyId, ownerId, (userId, target, options) =>
    context.actors.ask(user, userId, { type: 'removeKey', ...target }, options),
  );
}

/** Adds a software key to an account for an admin, as an unproven claim (decision 0002). */
export async function claimKey(
  context: Context,
  ownerId: string,
  { publicKey, name, mcpAccess, cardDavAccess, browserLogin }: NewClaim,
): Promise<UserKey> {
  requireBytes(publicKey, PUBLIC_KEY_BYTES, 'publicKey');
  const { actors } = context;
  const access =
    withFlag(0, KeyFlag.McpAccess, mcpAccess === true) |
    withFlag(0, KeyFlag.CardDav, cardDavAccess === true) |
    withFlag(0, KeyFlag.NoBrowserLogin, browserLogin === false);
  return auditingKeyRefusals(context, 'admin_claimKey', async () => {
    requireFreshForKeys(context);
    const command: ClaimKey = {
      type: 'claimKey',
      publicKey,
      ...(name === undefined ? {} : { name }),
      access,
      ...holderIn(actors, publicKey),
      origin: { ...originOf(context), by: context.session.userId },
    };
    const options = askOptions('admin_claimKey', context);
    const { key } = await actors.ask(user, ownerId, command, options);
    return key;
  });
}

function holderIn(actors: ActorSystem, publicKey: string): Pick<ClaimKey, 'holder'> {
  const holder = holderOf(actors, publicKey);
  return holder === undefined ? {} : { holder };
}

interface ChangeTarget {
  readonly keyId: string;
  readonly sessionId: string | null;
  readonly origin: Origin;
}

function change<Result>(
  context: Context,
  type: 'updateKey' | 'removeKey',
  sentKeyId: string | number,
  ownerId: string | undefined,
  ask: (userId: string, target: ChangeTarget, options: AskOptions) => Promise<Result>,
): Promise<Result> {
  const { session } = context;
  const operation = ownerId === undefined ? type : `admin_${type}`;
  return auditingKeyRefusals(context, operation, async () => {
    const keyId = readId(sentKeyId);
    if (keyId === undefined) throw new GatewayError('KeyNotFound');
    if (ownerId !== undefined) requireFreshForKeys(context);
    const by = ownerId === undefined ? {} : { by: session.userId };
    const userId = ownerId ?? session.userId;
    const sessionId = userId === session.userId ? session.id : null;
    const target = { keyId, sessionId, origin: { ...originOf(context), ...by } };
    return ask(userId, target, askOptions(operation, context));
  });
}

/** For admins: the actor of the changed account does not know the session of the admin, so it cannot check its age. */
function requireFreshForKeys({ nowMs, session, settings }: Context): void {
  const freshSeconds = settings.get('KeyChangeFreshLoginSeconds');
  if (freshSeconds > 0 && nowMs - session.createdMs > freshSeconds * SECOND_MS)
    throw new GatewayError('FreshLoginRequired');
}
