/** Finds the client of an id: an application with redirect URIs, a metadata document, or a sealed registration. */
import { app } from '../../actors/apps/app.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { OWNS_ALL, type Ownership } from '../../actors/runtime/ownership.ts';
import { HOSTS_APP_ID } from '../../domain/apps.ts';
import { GatewayError } from '../../domain/errors.ts';
import { parseId } from '../../domain/ids.ts';
import type { Holder } from '../../domain/limits/holders.ts';
import type { HostKind } from '../../domain/oauth/clients.ts';
import { viewApp } from '../apps/apps.ts';
import { indexEntryOf } from '../http/checks/session-lookup.ts';
import { type ClientDocuments, documentHost } from './documents.ts';
import { type OAuthPolicy, takesDocumentsOf, takesRegistrations } from './policy.ts';
import type { Sealers } from './sealed.ts';

/** Characters of a client id, sealed ones included. */
export const CLIENT_ID_MAX = 2_048;

export interface OAuthClient {
  readonly id: string;
  readonly kind: HostKind;
  /** Its own claim. */
  readonly name: string;
  /** Host of its document, or of the application; null for a registration. */
  readonly host: string | null;
  readonly redirectUris: readonly string[];
  /** Its application, or the row of those without one. */
  readonly appId: string;
}

interface ClientDeps {
  readonly policy: OAuthPolicy;
  readonly documents: ClientDocuments;
  readonly sealers: Sealers;
}

/** The part of a client that its id says without a look at anything else. */
type NamedClient =
  | { readonly kind: 'application'; readonly appId: string }
  | { readonly kind: 'document'; readonly appId: string; readonly host: string }
  | { readonly kind: 'registration'; readonly appId: string };

/** Opens the row for hosts without an application; a journal has it once. Its owner does. */
export async function openHostsRow(
  actors: ActorSystem,
  url: string,
  ownership: Ownership = OWNS_ALL,
): Promise<void> {
  if (!ownership.owns(app.kind, HOSTS_APP_ID)) return;
  if (actors.lookup('appId', HOSTS_APP_ID) !== undefined) return;
  await actors.ask(app, HOSTS_APP_ID, { type: 'openHostsRow', url });
}

export class OAuthClientRegistry {
  readonly #deps: ClientDeps;

  constructor(deps: ClientDeps) {
    this.#deps = deps;
  }

  /** Returns the client that the id names, if this deployment takes such clients now. Throws `OAuthInvalidClient`. */
  named(actors: ActorSystem, clientId: string): NamedClient {
    const client = this.#named(clientId);
    if (client === undefined) throw new GatewayError('OAuthInvalidClient', 'the client is not known');
    if (indexEntryOf(actors, client.appId)?.openedTick == null)
      throw new GatewayError(
        'OAuthInvalidClient',
        client.kind === 'application'
          ? 'the application is not approved for agents'
          : 'hosts without an application are switched off',
      );
    return client;
  }

  /** `holder`: the caller, with its session: documents are fetched for logged-in accounts alone. Throws `OAuthInvalidClient`, `AccessRateLimit`. */
  async find(actors: ActorSystem, clientId: string, holder: Holder): Promise<OAuthClient> {
    const client = this.named(actors, clientId);
    if (client.kind === 'document') {
      const document = await this.#deps.documents.find(clientId, holder);
      return { id: clientId, ...client, ...document };
    }
    return this.local(actors, clientId);
  }

  /** The same for clients that need no document. */
  async local(actors: ActorSystem, clientId: string): Promise<OAuthClient> {
    const { kind, appId } = this.named(actors, clientId);
    const unknown = () => new GatewayError('OAuthInvalidClient', 'the client is not known');
    if (kind === 'registration') {
      const registration = this.#deps.sealers.registrations.open(clientId);
      if (registration === undefined) throw unknown();
      return { id: clientId, kind, host: null, appId, ...registration };
    }
    const view = kind === 'application' ? await viewApp(actors, appId) : undefined;
    if (view === undefined || view.redirectUris.length === 0) throw unknown();
    const host = URL.canParse(view.url) ? new URL(view.url).host : null;
    return { id: clientId, kind, name: view.name, host, redirectUris: view.redirectUris, appId };
  }

  #named(clientId: string): NamedClient | undefined {
    if (clientId.length > CLIENT_ID_MAX) return undefined;
    const appId = parseId(clientId);
    if (appId !== undefined) return appId === HOSTS_APP_ID ? undefined : { kind: 'application', appId };
    const { policy, sealers } = this.#deps;
    const host = documentHost(clientId);
    if (host !== undefined)
      return takesDocumentsOf(policy, new URL(clientId).hostname)
        ? { kind: 'document', appId: HOSTS_APP_ID, host }
        : undefined;
    if (!takesRegistrations(policy) || sealers.registrations.open(clientId) === undefined) return undefined;
    return { kind: 'registration', appId: HOSTS_APP_ID };
  }
}
