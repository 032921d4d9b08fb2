/** The form of the configuration that the program uses once all of its file was found right, and the defaults. */

import { LOOPBACK_RANGES } from '../limits/networks.ts';
import { KNOWN_PRIVATE_REDIRECTS } from '../oauth/clients.ts';
import type { SettingName, SettingValue } from '../settings/settings.ts';
import { BUCKET_DEFAULTS, type FileServerConfiguration } from './file-servers.ts';
import type { McpServerConfiguration } from './mcp-servers.ts';

/** Modules of the built-in tools and of the sandbox. A configuration may name others. */
export const BUILT_IN_MODULES = ['chat', 'wallet', 'payments', 'markets', 'core'] as const;
/** Form of the name of a module. It is the first segment of the paths that are proxied to it. */
export const MODULE_NAME = '^[a-z][a-z0-9-]{0,31}$';

/**
 * First segments of the gateway's own paths, and of paths that clients probe for an authorization server. A module of such a
 * name could not be reached, or would hide what must stay 404.
 */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  'auth',
  'authorize',
  'connect',
  'docs',
  'gateway',
  'health',
  'http',
  'https',
  'internal',
  'mcp',
  'metrics',
  'proxyadmin',
  'register',
  'sandbox',
  'token',
  'web',
]);

/** Values of keys that nothing names; a key that is not here has no default, or one that the text explains. */
export const DEFAULTS = {
  Project: 'demo',
  Production: false,
  'Listen.host': '127.0.0.1',
  'Listen.port': 8080,
  'Listen.receiveBufferBytes': 262_144,
  'Listen.proxyProtocol': false,
  'Internal.host': '127.0.0.1',
  'Internal.port': 8081,
  DataPath: './data',
  OAuthClients: 'any',
  OAuthPrivateRedirects: KNOWN_PRIVATE_REDIRECTS,
  OAuthRootMetadata: true,
  'Fido2.serverName': 'Gatehouse',
  'Fido2.timestampDriftTolerance': 300_000,
  'Fido2.serverIcon': '',
  ...BUCKET_DEFAULTS,
  'Admin.allow': LOOPBACK_RANGES,
  'Secrets.sealKeyLost': false,
  'Cluster.listen': '127.0.0.1:0',
  'Cluster.plain': false,
  'Cluster.leaseMilliseconds': 1_000,
  'Cluster.logHours': 1,
  'Cluster.audit': 'node',
  'Cluster.sharedFiles': false,
  'Workers.threads': 0,
  'Log.requests': 'all',
  'Log.format': 'json',
  'Log.level': 'info',
  'Telemetry.sampleRatio': 0,
  'Telemetry.metricsSeconds': 0,
  'Telemetry.logs': false,
} as const;

/** Methods that reach a module only where it asks for them: those of WebDAV, and OPTIONS. Never CONNECT and TRACE. */
export const ASKED_METHODS = ['OPTIONS', 'PROPFIND', 'PROPPATCH', 'REPORT', 'MKCOL', 'COPY', 'MOVE'] as const;
export type AskedMethod = (typeof ASKED_METHODS)[number];

/** Methods that a module with `contactSync` must allow: CardDAV works with no fewer (RFC 6352). */
export const CONTACT_SYNC_METHODS: readonly AskedMethod[] = ['OPTIONS', 'PROPFIND', 'REPORT'];

export interface ModuleConfiguration {
  readonly url: string;
  readonly key: string | undefined;
  readonly poll: boolean;
  readonly accountEvents: boolean;
  readonly public: readonly string[];
  readonly methods: readonly AskedMethod[];
  readonly encodedSlashes: boolean;
  readonly contactSync: boolean;
}

/** This process is one of several nodes. */
export interface ClusterConfiguration {
  readonly url: string;
  readonly name: string;
  /** `host:port`. */
  readonly listen: string;
  /** Undefined: what `listen` got. */
  readonly advertise: string | undefined;
  /** Secrets as written, the one that seals first. */
  readonly secret: readonly string[];
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | undefined;
  readonly plain: boolean;
  readonly leaseMilliseconds: number;
  readonly logHours: number;
  readonly audit: 'node' | 'table';
  readonly sharedFiles: boolean;
}

/** Everything resolved: flags over environment over file over defaults. Frozen. */
export interface Configuration {
  readonly project: string;
  /** An origin. Undefined: http(s)://localhost with the actual port. */
  readonly baseUrl: string | undefined;
  readonly production: boolean;
  readonly listen: {
    readonly host: string;
    readonly port: number;
    readonly tls: { readonly cert: string; readonly key: string } | undefined;
    /** 0: the kernel's own choice. */
    readonly receiveBufferBytes: number;
    readonly proxyProtocol: boolean;
  };
  readonly internal: {
    readonly host: string;
    readonly port: number;
    readonly allowHosts: readonly string[];
  };
  readonly dataPath: string;
  readonly trustedProxies: readonly string[];
  readonly modules: Readonly<Record<string, ModuleConfiguration>>;
  readonly mcpTools: Readonly<Record<string, unknown>>;
  readonly mcpResources: Readonly<Record<string, unknown>>;
  readonly mcpProfiles: unknown;
  readonly mcpServers: Readonly<Record<string, McpServerConfiguration>>;
  /** Undefined: as the start says, closed in Production alone. */
  readonly mcpBasicPersonalReads: boolean | undefined;
  readonly oauthClients: 'registered' | 'cimd' | 'any';
  /** Lower-case; for documents, empty is every host. */
  readonly oauthClientHosts: readonly string[];
  /** Metadata documents are offered and taken. */
  readonly oauthDocuments: boolean;
  /** Addresses from which documents come although the rules on addresses refuse them. */
  readonly oauthDocumentAllow: readonly string[];
  readonly oauthPrivateRedirects: readonly string[];
  readonly oauthRootMetadata: boolean;
  readonly fido2: {
    readonly serverDomain: string | undefined;
    readonly serverName: string;
    readonly timestampDriftToleranceMs: number;
    readonly serverIcon: string;
    readonly origins: readonly string[] | undefined;
  };
  readonly localFileStoragePath: string | undefined;
  readonly fileStagingPath: string | undefined;
  readonly fileServers: Readonly<Record<string, FileServerConfiguration>>;
  /** Undefined: the gateway sends the bytes of every download. */
  readonly sendfileBehind: { readonly header: string; readonly prefix: string } | undefined;
  readonly settings: Readonly<Partial<Record<SettingName, SettingValue>>>;
  readonly webhookAllow: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly admin: { readonly publicKeys: readonly string[]; readonly allow: readonly string[] };
  /** Keys as written, the one that seals first; empty: the journal's own secret seals. */
  readonly sealKeys: readonly string[];
  /** API keys that none of them opens are given up; else such a journal is not served. */
  readonly sealKeyLost: boolean;
  readonly cluster: ClusterConfiguration | undefined;
  /** 0: cores − 1, at least 1. */
  readonly workerThreads: number;
  readonly log: {
    readonly requests: 'all' | 'errors' | 'off';
    /** Part of the lines of successful requests that is written, by route. */
    readonly sample: Readonly<Record<string, number>>;
    readonly format: 'json' | 'pretty';
    readonly level: 'info' | 'warn' | 'error';
  };
  /** Undefined: no collector. */
  readonly telemetry:
    | {
        readonly url: string;
        readonly headers: Readonly<Record<string, string>>;
        /** 0 to 1. */
        readonly sampleRatio: number;
        /** 0: metrics are not sent. */
        readonly metricsSeconds: number;
        readonly logs: boolean;
      }
    | undefined;
  readonly staticPath: string | undefined;
  /** Modules that are not configured are served by the sandbox. */
  readonly sandbox: boolean;
}
