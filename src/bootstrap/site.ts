/** Own hosts and origins of this deployment, once the port is known. */
import type { Configuration } from '../domain/config/configuration.ts';
import type { OfferedFeatures } from '../domain/features.ts';
import { isLoopback } from '../domain/limits/networks.ts';
import { authMethods } from '../domain/sessions.ts';
import { isPageOrigin, type Site } from '../domain/site.ts';

const OWN_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

/** `port` is the bound port. `codesDelivered`: a chat module exists. `features`: as of the call. */
export function resolveSite(
  configuration: Configuration,
  version: string,
  port: number,
  codesDelivered: boolean,
  features: () => OfferedFeatures,
): Site {
  const scheme = configuration.listen.tls === undefined ? 'http' : 'https';
  const baseUrl = configuration.baseUrl ?? `${scheme}://localhost:${port}`;
  const base = new URL(baseUrl);
  const hosts = [base.hostname.toLowerCase(), ...OWN_HOSTS];
  const fido2Origins = configuration.fido2.origins?.map((each) =>
    isPageOrigin(each) ? originOf(each) : each,
  ) ?? [base.origin];
  const configured = [
    base.origin,
    ...fido2Origins.filter(isPageOrigin),
    ...configuration.allowedOrigins.map(originOf),
  ];
  const own = OWN_HOSTS.map((host) => `${scheme}://${host}:${port}`);
  return {
    project: configuration.project,
    version,
    production: configuration.production,
    baseUrl,
    issuer: configuration.oauthRootMetadata ? baseUrl : `${baseUrl}/connect`,
    hosts: new Set(hosts),
    addressHosts: false,
    checkHost: configuration.production || isLoopback(configuration.listen.host),
    origins: new Set([...configured, ...own]),
    // Where a proxy ends TLS, only the proxy knows whether all its host names use TLS.
    strictTransport: configuration.production && configuration.listen.tls !== undefined,
    endsTls: configuration.listen.tls !== undefined,
    secureCookies: configuration.production || base.protocol === 'https:',
    fido2: {
      rpId: configuration.fido2.serverDomain ?? base.hostname,
      rpName: configuration.fido2.serverName,
      icon: configuration.fido2.serverIcon,
      origins: fido2Origins,
      timestampDriftToleranceMs: configuration.fido2.timestampDriftToleranceMs,
    },
    authMethods: authMethods(codesDelivered),
    get features() {
      return features().offered;
    },
    webhookAllow: configuration.webhookAllow,
    adminPublicKeys: new Set(configuration.admin.publicKeys),
    adminAllow: configuration.admin.allow,
  };
}

/** The internal listener always checks Host and never uses TLS. */
export function internalSite(site: Site, { host, allowHosts }: Configuration['internal']): Site {
  const hosts = new Set([...OWN_HOSTS, host, ...allowHosts].map((name) => name.toLowerCase()));
  return { ...site, hosts, addressHosts: true, checkHost: true, strictTransport: false, endsTls: false };
}

function originOf(url: string): string {
  return new URL(url).origin;
}

/** The address of a listener for this machine. */
export function addressOf(listen: { host: string; tls: unknown }, port: number): string {
  const anywhere = listen.host === '0.0.0.0' || listen.host === '::';
  const host = anywhere ? '127.0.0.1' : listen.host;
  return `${listen.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
