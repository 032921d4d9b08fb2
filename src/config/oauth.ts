/** Keys on hosts that connect with OAuth: what is left out, and values that contradict each other. */
import { type Configuration, DEFAULTS } from '../domain/config/configuration.ts';
import type { ConfigurationFile } from '../domain/config/file.ts';
import { isLoopback, LOOPBACK_RANGES } from '../domain/limits/networks.ts';
import type { Fault } from '../domain/schema.ts';
import { isRecord } from './source.ts';

type OAuthConfiguration = Pick<Configuration, Extract<keyof Configuration, `oauth${string}`>>;

export function resolveOAuth(file: ConfigurationFile, production: boolean): OAuthConfiguration {
  const clients = file.OAuthClients ?? DEFAULTS.OAuthClients;
  // In Production a proxy often stands before a listener on loopback: services of this machine stay out of reach there.
  const ownServices = !production && isLoopback(file.Listen?.host ?? DEFAULTS['Listen.host']);
  return {
    oauthClients: clients,
    oauthClientHosts: (file.OAuthClientHosts ?? []).map((name) => name.toLowerCase()),
    oauthDocuments: file.OAuthDocuments ?? (production || clients === 'cimd'),
    oauthDocumentAllow: file.OAuthDocumentAllow ?? (ownServices ? LOOPBACK_RANGES : []),
    oauthPrivateRedirects: file.OAuthPrivateRedirects ?? DEFAULTS.OAuthPrivateRedirects,
    oauthRootMetadata: file.OAuthRootMetadata ?? DEFAULTS.OAuthRootMetadata,
  };
}

/** Hosts without an application could not ask at all. */
export function oauthFaults(file: unknown): Fault[] {
  if (!isRecord(file) || file['OAuthClients'] !== 'cimd' || file['OAuthDocuments'] !== false) return [];
  return [{ path: 'OAuthDocuments', message: 'is false, and OAuthClients "cimd" takes documents' }];
}
