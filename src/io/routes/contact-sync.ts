/**
 * Contact sync (CardDAV): tokens of devices, and where devices find the module. The module's own API is proxied
 * (routes/proxy.ts).
 */
import { user } from '../../actors/accounts/user.ts';
import type { SessionRecord } from '../../actors/accounts/user-types.ts';
import { GatewayError } from '../../domain/errors.ts';
import {
  array,
  idText,
  int64,
  integer,
  nameText,
  nothing,
  nullable,
  object,
  optional,
  type Static,
  text,
  utcText,
} from '../../domain/schema.ts';
import { CONTACT_SYNC_TOKENS_MAX, type SessionContext } from '../../domain/sessions.ts';
import { toIso } from '../../domain/time.ts';
import { auditingKeyRefusals, originOf, requireId } from '../accounts/login-parts.ts';
import { type AnyRoute, defineRoute, Reply, type RouteContext } from '../http/table/route.ts';
import { contactSyncModule, type ReachDeps } from '../proxy/reach.ts';

type Deps = Pick<ReachDeps, 'moduleRules'>;
type SessionRoute = RouteContext<unknown, unknown, SessionContext>;

const NAME_CHARACTERS_MAX = 64;
/** Seconds that a device may remember the address. */
const FOUND_SECONDS = 300;
/** A token of 46 characters. */
const TOKEN_EXAMPLE = 'AAAxv2kd8m3Qp0h7sJtXb5zYw1Rc6nGfLeVuKiHoDaTzPq';

const tokenFields = {
  id: idText(),
  keyId: idText(),
  name: text({ examples: ['Phone'] }),
  createdUtc: utcText(),
  lastUsedUtc: nullable(utcText()),
};
const tokenSchema = object(tokenFields);
const place = {
  username: text({ description: 'User name of the device; a proven contact is taken too', examples: ['42'] }),
  url: text({ examples: ['https://gate.example/contacts/v1/'] }),
};

export function createContactSyncRoutes(deps: Deps): AnyRoute[] {
  return [listRoute(deps), addRoute(deps), removeToken, wellKnownRoute(deps)];
}

function listRoute(deps: Deps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/contact_sync',
    summary: 'Tokens with which devices sync contacts',
    description:
      'Devices sync with the module at `url`, which is null where no module has `contactSync`. Tokens themselves are never shown again.',
    group: 'keys',
    auth: 'session',
    result: object({
      username: place.username,
      url: nullable(place.url),
      tokensPerKey: integer(),
      tokens: array(tokenSchema),
    }),
    async handle({ actors, session, site }) {
      const records = await actors.query(user, session.userId, { type: 'contactSync' });
      const module = contactSyncModule(deps);
      return {
        username: session.userId,
        url: module === undefined ? null : addressOf(site.baseUrl, module),
        tokensPerKey: CONTACT_SYNC_TOKENS_MAX,
        tokens: records.map(tokenItem),
      };
    },
  });
}

function addRoute(deps: Deps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/auth/v1/contact_sync/token',
    summary: 'A token for a device that syncs contacts; it is shown once',
    description:
      'The device sends `username` and `token` as `Authorization: Basic`. The token opens the module at `url` alone, over TLS. It ends when it is removed, when its key is removed or loses `cardDavAccess`, and when the account is blocked. Needs a recent login.',
    group: 'keys',
    auth: 'session',
    body: object({
      keyId: int64('Key with `cardDavAccess`: decimal string'),
      name: optional(nameText(NAME_CHARACTERS_MAX)),
    }),
    result: object({ ...tokenFields, ...place, token: text({ examples: [TOKEN_EXAMPLE] }) }),
    errors: ['KeyNotFound', 'FreshLoginRequired', 'ContactSyncLimitReached', 'ContactSyncUnavailable'],
    handle: (context) => auditingKeyRefusals(context, 'contact_sync_token', () => addToken(deps, context)),
  });
}

async function addToken(
  deps: Deps,
  context: SessionRoute & { readonly body: { readonly keyId: string | number; readonly name?: string } },
) {
  const { actors, body, session, site } = context;
  const module = contactSyncModule(deps);
  if (module === undefined) throw new GatewayError('ContactSyncUnavailable');
  const { token, record } = await actors.ask(user, session.userId, {
    type: 'addContactSync',
    keyId: requireId(body.keyId, 'keyId'),
    name: body.name ?? 'Device',
    sessionId: session.id,
    origin: originOf(context),
  });
  const url = addressOf(site.baseUrl, module);
  return { ...tokenItem(record), username: session.userId, url, token };
}

const removeToken = defineRoute({
  method: 'POST',
  path: '/auth/v1/contact_sync/remove',
  summary: 'Remove a token: its device syncs no more from then on',
  description: 'Tokens of other devices stay.',
  group: 'keys',
  auth: 'session',
  body: object({ id: int64('Id of the token: decimal string') }),
  result: nothing(),
  errors: ['NotFound'],
  handle: (context) =>
    context.actors.ask(user, context.session.userId, {
      type: 'removeContactSync',
      id: requireId(context.body.id, 'id'),
      origin: originOf(context),
    }),
});

/** Devices ask with any method, PROPFIND for one (RFC 6764 5). */
function wellKnownRoute(deps: Deps): AnyRoute {
  return defineRoute({
    method: 'GET',
    everyMethod: true,
    path: '/.well-known/carddav',
    summary: 'Where devices sync contacts (RFC 6764)',
    description: 'Every method is answered alike. 404 where no module has `contactSync`.',
    docs: {
      answers: { 301: { description: 'The place is in `Location`' } },
      sends: ['Location', 'Cache-Control'],
    },
    group: 'modules',
    auth: 'none',
    errors: ['NotFound'],
    handle() {
      const module = contactSyncModule(deps);
      if (module === undefined) throw new GatewayError('NotFound');
      return Reply.empty(301, [
        ['Location', pathOf(module)],
        ['Cache-Control', `public, max-age=${FOUND_SECONDS}`],
      ]);
    },
  });
}

function addressOf(baseUrl: string, module: string): string {
  return baseUrl + pathOf(module);
}

function pathOf(module: string): string {
  return `/${module}/v1/`;
}

function tokenItem({ id, keyId, name, createdMs, lastSeenMs }: SessionRecord): Static<typeof tokenSchema> {
  return {
    id,
    keyId: keyId ?? '',
    name: name ?? '',
    createdUtc: toIso(createdMs),
    lastUsedUtc: lastSeenMs === 0 ? null : toIso(lastSeenMs),
  };
}
