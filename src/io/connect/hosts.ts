/** Connected hosts of an account as its owner and admins see them, and their end. */
import { type LiveGrant, user } from '../../actors/accounts/user.ts';
import type { EndedGrant } from '../../actors/accounts/user-grants.ts';
import { isGrantValid } from '../../actors/apps/app-access-index.ts';
import type { Origin } from '../../actors/change.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { grantEndMs } from '../../domain/oauth/grants.ts';
import {
  array,
  idText,
  integer,
  named,
  nullable,
  object,
  oneOf,
  type Static,
  text,
  utcText,
} from '../../domain/schema.ts';
import { toIso } from '../../domain/time.ts';
import { indexEntryOf } from '../http/checks/session-lookup.ts';

export const hostSchema = named(
  'ConnectedHost',
  object({
    id: idText(),
    name: text({ description: 'The claim of the host', examples: ['Notebook'] }),
    host: text({ description: 'Where its answers go', examples: ['host.example'] }),
    kind: oneOf(['application', 'document', 'registration']),
    appId: idText(),
    resource: text({ examples: ['/connect/mcp'] }),
    scopes: array(text({ examples: ['tools'] })),
    keyId: nullable(idText()),
    createdUtc: utcText(),
    lastUsedUtc: utcText(),
    expiresUtc: utcText(),
    sessions: integer(),
  }),
);

export const endedHostSchema = named('EndedHost', object({ id: idText(), sessionsClosed: integer() }));

type HostItem = Static<typeof hostSchema>;

/** Those that live, the one used last first. */
export async function listHosts(actors: ActorSystem, userId: string): Promise<HostItem[]> {
  const grants = await actors.query(user, userId, { type: 'grants' });
  return grants
    .filter((grant) => isGrantValid(indexEntryOf(actors, grant.appId), grant))
    .toSorted((a, b) => b.usedMs - a.usedMs)
    .map(hostItem);
}

/** Throws `NotFound` for what is no connected host of the account. */
export async function endHost(
  actors: ActorSystem,
  userId: string,
  grant: string,
  origin: Origin,
): Promise<EndedGrant> {
  return actors.ask(user, userId, { type: 'endGrant', grant, origin });
}

function hostItem(grant: LiveGrant): HostItem {
  const { id, name, host, kind, appId, audience, scopes, keyId, createdMs, usedMs, sessionIds } = grant;
  return {
    id,
    name,
    host,
    kind,
    appId,
    resource: audience,
    scopes: [...scopes],
    keyId,
    createdUtc: toIso(createdMs),
    lastUsedUtc: toIso(usedMs),
    expiresUtc: toIso(grantEndMs(grant)),
    sessions: sessionIds.length,
  };
}
