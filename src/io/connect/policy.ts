/**
 * Policy for OAuth clients: those that this deployment takes, and where answers may go (`OAuth…` keys of the
 * configuration).
 */
import type { Configuration } from '../../domain/config/configuration.ts';
import { APPLICATION_REDIRECTS, type HostKind, type RedirectRules } from '../../domain/oauth/clients.ts';

/** `registered`: applications alone; `cimd`: also client-id metadata documents; `any`: also dynamic registration. */
export type OAuthClients = Configuration['oauthClients'];

export interface OAuthPolicy {
  readonly clients: OAuthClients;
  /** Metadata documents are offered and taken, where `clients` takes them. */
  readonly documents: boolean;
  /** Lower-case hosts of metadata documents; empty: every host. */
  readonly documentHosts: ReadonlySet<string>;
  /** Redirect rules by the kind of a client. */
  readonly redirects: Readonly<Record<HostKind, RedirectRules>>;
}

type PolicyKeys =
  | 'production'
  | 'oauthClients'
  | 'oauthClientHosts'
  | 'oauthDocuments'
  | 'oauthPrivateRedirects';

/** In Production a registration, which anybody may make, sends people to hosts of the list alone. */
export function policyOf(configuration: Pick<Configuration, PolicyKeys>): OAuthPolicy {
  const { production, oauthClients, oauthClientHosts, oauthDocuments, oauthPrivateRedirects } = configuration;
  const hosts = new Set(oauthClientHosts);
  const document = { webHosts: null, privateUris: oauthPrivateRedirects };
  return {
    clients: oauthClients,
    documents: oauthDocuments,
    documentHosts: hosts,
    redirects: {
      application: APPLICATION_REDIRECTS,
      document,
      registration: production ? { ...document, webHosts: hosts } : document,
    },
  };
}

export function takesRegistrations({ clients }: OAuthPolicy): boolean {
  return clients === 'any';
}

export function takesDocuments({ clients, documents }: OAuthPolicy): boolean {
  return documents && clients !== 'registered';
}

/** May a metadata document come from this host? */
export function takesDocumentsOf(policy: OAuthPolicy, host: string): boolean {
  const { documentHosts } = policy;
  return takesDocuments(policy) && (documentHosts.size === 0 || documentHosts.has(host.toLowerCase()));
}
