/** Which OAuth clients this deployment takes: `OAuthClients` and `OAuthClientHosts` of the configuration. */

/** `registered`: applications alone; `cimd`: also client-id metadata documents; `any`: also dynamic registration. */
export type OAuthClients = 'registered' | 'cimd' | 'any';

export interface OAuthPolicy {
  readonly clients: OAuthClients;
  /** Lower-case hosts of metadata documents; empty: every host. */
  readonly documentHosts: ReadonlySet<string>;
}

export function takesRegistrations({ clients }: OAuthPolicy): boolean {
  return clients === 'any';
}

export function takesDocuments({ clients }: OAuthPolicy): boolean {
  return clients !== 'registered';
}
/** May a metadata document come from this host? */
export function takesDocumentsOf(policy: OAuthPolicy, host: string): boolean {
  const { documentHosts } = policy;
  return takesDocuments(policy) && (documentHosts.size === 0 || documentHosts.has(host.toLowerCase()));
}
