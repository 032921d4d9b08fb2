/** Admin JSON of keys over all accounts (spec 4.3, 5.1): search, add, set what a key may do, remove. */

import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { Administration } from '../../../actors/runtime/administration.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { ID_EXAMPLE, KEY_EXAMPLE } from '../../../domain/examples.ts';
import { decodeBase64url } from '../../../domain/ids.ts';
import { hasFlag, KeyFlag, type UserKey } from '../../../domain/keys.ts';
import {
  array,
  boolean,
  idText,
  int64,
  integer,
  named,
  nameText,
  object,
  optional,
  type Static,
  text,
} from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import { userKeyItem, userKeySchema } from '../../accounts/account.ts';
import { claimKey, removeUserKey, setKeyAccess } from '../../accounts/key-changes.ts';
import { requireId } from '../../accounts/login-parts.ts';
import { nicknameSchema, withNicknames } from '../../accounts/nicknames.ts';
import { type KeyPage, type KeyPosition, searchKeys } from '../../admin/keys.ts';
import { nextLink, PAGE_ROWS, PAGE_ROWS_MAX, requireAccount, requireFresh } from '../../admin/pagination.ts';
import { clearSid } from '../../http/checks/sid-cookie.ts';
import { type AnyRoute, adminRoute, Reply } from '../../http/table/route.ts';

const PATH = '/ProxyAdmin/api/user_keys';
/** Characters of the longest credential id: 1,023 bytes in base64url (WebAuthn Level 3, section 4). */
const KEY_TEXT_MAX = 1_364;

/** Spec 2.2, with the account, and whether the key was removed. */
const item = named(
  'AccountKey',
  object({ userId: idText(), ...userKeySchema.properties, deleted: boolean() }),
);
const listed = named('ListedKey', object({ ...item.properties, nickname: nicknameSchema }));
export type ListedKey = Static<typeof listed>;
const userId = int64('User id: decimal string');
const keyId = int64('Key id: decimal string');
const access = {
  mcpAccess: optional(boolean()),
  cardDavAccess: optional(boolean()),
  browserLogin: optional(boolean({ description: 'False: the key may only use MCP' })),
};
export const keyQuery = object({
  userId: optional(int64('Keys of this account')),
  publicKey: optional(
    text({
      minLength: 1,
      maxLength: KEY_TEXT_MAX,
      examples: [KEY_EXAMPLE],
      description: 'The whole public key or credential id, base64url',
    }),
  ),
  deleted: optional(boolean({ description: 'Removed keys too' })),
  after: optional(
    text({
      maxLength: 39,
      examples: [ID_EXAMPLE],
      description: 'Account id, or account id, dot and key id: where the page before ended',
    }),
  ),
  limit: optional(integer({ minimum: 1, maximum: PAGE_ROWS_MAX, description: '100 unless given' })),
});
export type KeyQuery = Static<typeof keyQuery>;

export function createAdminKeyRoutes(administration: Administration): AnyRoute[] {
  return [searchRoute(administration), addRoute, updateRoute, removeRoute];
}

/** A page of keys with where the next one begins, for the list and its export. Throws `InvalidInput`, `NotFound`. */
export async function pageOfKeys(
  actors: ActorSystem,
  administration: Administration,
  query: KeyQuery,
  session: SessionContext,
): Promise<{ readonly items: readonly ListedKey[]; readonly next: KeyPage['next'] }> {
  const { publicKey } = query;
  const search = {
    userId: query.userId === undefined ? undefined : requireId(query.userId, 'userId'),
    publicKey,
    deleted: query.deleted === true,
    after: readPosition(query.after),
    limit: query.limit ?? PAGE_ROWS,
  };
  if (publicKey !== undefined && decodeBase64url(publicKey) === undefined)
    throw new GatewayError('InvalidInput', 'publicKey: expected base64url without padding');
  if (search.userId !== undefined) await requireAccount(actors, search.userId);
  const accountIds = (after: string, limit: number) => administration.ids('user', after, limit);
  const { rows, next } = await searchKeys({ actors, accountIds }, search);
  const items = rows.map((row) => keyItem(row.userId, row.key, session));
  return { items: await withNicknames(actors, items, (row) => row.userId), next };
}

/** The header `Link` (RFC 8288) names the next page, because a page may read many accounts without a match. */
function searchRoute(administration: Administration): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: PATH,
    summary: 'Keys of all accounts; a page looks at 1,000 accounts, `Link` names the next one',
    description:
      'Filters hold together. Removed keys come with `deleted`. A page may be empty and still name a next one.',
    docs: { sends: ['Link'] },
    query: keyQuery,
    result: array(listed),
    errors: ['NotFound'],
    async handle({ actors, session, query }) {
      const { items, next } = await pageOfKeys(actors, administration, query, session);
      return Reply.result(items, next === undefined ? [] : [['Link', nextLink(PATH, query, afterOf(next))]]);
    },
  });
}

const addRoute = adminRoute({
  method: 'POST',
  path: `${PATH}/add`,
  summary: 'Add a software key to an account, as a claim that its holder has not proved',
  description: 'The holder proves the key by logging in with a signature. Needs a recent login.',
  body: object({
    userId,
    publicKey: text({ maxLength: 64, examples: [KEY_EXAMPLE] }),
    name: optional(nameText(64)),
    ...access,
  }),
  result: item,
  errors: ['NotFound', 'KeyLimitReached', 'KeyAlreadyRegistered', 'FreshLoginRequired'],
  idempotent: true,
  async handle(context) {
    requireFresh(context);
    const { body, session } = context;
    const owner = requireId(body.userId, 'userId');
    return keyItem(owner, await claimKey(context, owner, body), session);
  },
});

const updateRoute = adminRoute({
  method: 'POST',
  path: `${PATH}/update`,
  summary: 'Allow or forbid a key of an account for MCP, contact sync and browsers; omitted flags stay',
  description:
    'The key of a passkey takes `mcpAccess` and opens nothing with it. `browserLogin` false ends the browser sessions of the key. Needs a recent login.',
  docs: { sends: ['Set-Cookie'] },
  body: object({ userId, keyId, ...access }),
  result: item,
  errors: ['NotFound', 'KeyNotFound', 'FreshLoginRequired'],
  idempotent: true,
  async handle(context) {
    requireFresh(context);
    const { body, session, site } = context;
    const owner = requireId(body.userId, 'userId');
    const { key, currentClosed } = await setKeyAccess(context, body.keyId, body, owner);
    return Reply.result(keyItem(owner, key, session), currentClosed ? clearSid(site.secureCookies) : []);
  },
});

const removeRoute = adminRoute({
  method: 'POST',
  path: `${PATH}/remove`,
  summary: 'Remove a key of an account and end its sessions',
  description: 'The record stays, marked as removed. Needs a recent login.',
  docs: { sends: ['Set-Cookie'] },
  body: object({ userId, keyId }),
  result: object({ userId: idText(), keyId: idText(), sessionsClosed: integer() }),
  errors: ['NotFound', 'KeyNotFound', 'FreshLoginRequired'],
  idempotent: true,
  async handle(context) {
    requireFresh(context);
    const { body, site } = context;
    const owner = requireId(body.userId, 'userId');
    const { currentClosed, ...removed } = await removeUserKey(context, body.keyId, owner);
    return Reply.result({ userId: owner, ...removed }, currentClosed ? clearSid(site.secureCookies) : []);
  },
});

function keyItem(owner: string, key: UserKey, session: SessionContext): Static<typeof item> {
  const own = userKeyItem(key, session.keyId);
  return { userId: owner, ...own, deleted: hasFlag(key.flags, KeyFlag.Deleted) };
}

/** Throws `InvalidInput` that names the field. */
function readPosition(after: string | undefined): KeyPosition | undefined {
  if (after === undefined) return undefined;
  const [account = '', key, ...rest] = after.split('.');
  if (rest.length > 0)
    throw new GatewayError('InvalidInput', 'after: expected an account id, and a key id behind a dot');
  const position = { userId: requireId(account, 'after') };
  return key === undefined ? position : { ...position, keyId: requireId(key, 'after') };
}

/** Returns `after` for the query of the next page. */
export function afterOf({ userId, keyId }: KeyPosition): string {
  return keyId === undefined ? userId : `${userId}.${keyId}`;
}
