/** Compares two configurations: the keys that differ, by the names that the file has for them. */
import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from './configuration.ts';

/** Keys that a reload takes without a restart (`io/mcp/catalog.ts`), by their names in the file. */
const RELOADED = {
  mcpTools: ['McpTools', 'Config.McpTools'],
  mcpResources: ['McpResources', 'Config.McpResources'],
  mcpProfiles: ['McpProfiles'],
  mcpServers: ['McpServers'],
  mcpBasicPersonalReads: ['McpBasicPersonalReads'],
} as const satisfies Partial<Record<keyof Configuration, readonly string[]>>;
type Reloaded = keyof typeof RELOADED;
/** Files whose content a reload reads again (`bootstrap/tls.ts`); another path needs a restart. */
const RELOADED_FILES: readonly string[] = ['Listen.tls.cert', 'Listen.tls.key'];
/** No key of the file: the flag of this start. */
type FromFlags = 'sandbox';

/** Name in the file of what only a start reads. Below it names are those of the file, with a capital in sections. */
const NAMES: Readonly<Record<Exclude<keyof Configuration, Reloaded | FromFlags>, string>> = {
  project: 'Project',
  baseUrl: 'BaseUrl',
  production: 'Production',
  listen: 'Listen',
  internal: 'Internal',
  dataPath: 'DataPath',
  trustedProxies: 'TrustedProxies',
  modules: 'Modules',
  oauthClients: 'OAuthClients',
  oauthClientHosts: 'OAuthClientHosts',
  oauthDocuments: 'OAuthDocuments',
  oauthDocumentAllow: 'OAuthDocumentAllow',
  oauthPrivateRedirects: 'OAuthPrivateRedirects',
  oauthRootMetadata: 'OAuthRootMetadata',
  fido2: 'Fido2',
  localFileStoragePath: 'LocalFileStoragePath',
  fileStagingPath: 'FileStagingPath',
  fileServers: 'FileServers',
  sendfileBehind: 'SendfileBehind',
  settings: 'Settings',
  webhookAllow: 'WebhookAllow',
  allowedOrigins: 'AllowedOrigins',
  admin: 'Admin',
  sealKeys: 'Secrets.sealKey',
  sealKeyLost: 'Secrets.sealKeyLost',
  cluster: 'Cluster',
  workerThreads: 'Workers.threads',
  log: 'Log',
  telemetry: 'Telemetry',
  staticPath: 'StaticPath',
};
/** Names below a section that carry a unit here and none in the file. */
const WITHOUT_UNIT: Readonly<Record<string, string>> = {
  'Fido2.timestampDriftToleranceMs': 'Fido2.timestampDriftTolerance',
};

/** Says which part of a key of the file a reload takes; undefined: nothing. */
export function reloadOf(key: string): 'value' | 'content' | undefined {
  if (RELOADED_FILES.includes(key)) return 'content';
  const isReloaded = Object.values(RELOADED).some((names: readonly string[]) => names.includes(key));
  return isReloaded ? 'value' : undefined;
}

/**
 * Keys whose value would be another one after a restart: flags and environment over file over defaults, as a start
 * resolves them. Names alone, since some values are secrets.
 */
export function keysForRestart(started: Configuration, found: Configuration): string[] {
  return Object.entries(NAMES).flatMap(([key, name]) =>
    changes(started[key as keyof typeof NAMES], found[key as keyof typeof NAMES], name),
  );
}

function changes(before: unknown, after: unknown, name: string): string[] {
  if (!isSection(before) || !isSection(after))
    return isDeepStrictEqual(before, after) ? [] : [WITHOUT_UNIT[name] ?? name];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) => changes(before[key], after[key], `${name}.${key}`));
}

function isSection(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
