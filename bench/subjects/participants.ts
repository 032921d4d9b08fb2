/**
 * Servers that the gateway is compared with, one definition each. A floor is the cost of the work with nothing around
 * it and always takes part; a peer is another project's server and takes part with `--peers`, as far as it is
 * installed.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runSync } from '../../kit/run-sync.ts';
import { httpLibrary } from '../../src/io/http/listen/library.ts';

export interface ParticipantRow {
  readonly name: string;
  readonly kind: 'peer' | 'floor';
  /** Undefined where it is not installed. */
  readonly version: () => string | undefined;
  /** Settings that a reader must know to judge the figures. */
  readonly settings: string;
  /** Package or command that installs it. */
  readonly install: string;
}

export interface Participant {
  readonly name: string;
  readonly kind: 'peer' | 'floor';
  readonly settings: string;
  /** Version of one that takes part. */
  readonly version?: string;
  /** The reason why it does not take part. */
  readonly leftOut?: string;
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDERS = ['node_modules', 'bench/subjects/peers/node_modules'];
export const NCHAN_MODULE = '/usr/lib/nginx/modules/ngx_nchan_module.so';
const OURS = 'npm ci';
const PEERS_FOLDER = 'npm install in bench/subjects/peers';

export const PARTICIPANTS = {
  'empty-uws': {
    name: 'empty uWS handler',
    kind: 'floor',
    version: () => httpLibrary().version,
    settings: 'one thread; a handler that answers a constant of 15 bytes',
    install: OURS,
  },
  'equal-work': {
    name: 'uWS handler, equal work',
    kind: 'floor',
    version: () => httpLibrary().version,
    settings:
      'one thread; the same bytes and header fields, SHA-256 of the token, a request id, a log line; no session, no limits',
    install: OURS,
  },
  'bare-chunks': {
    name: 'bare uWS handler, chunks alone',
    kind: 'floor',
    version: () => httpLibrary().version,
    settings: 'one thread and one worker that hashes and writes; no session, no journal, nothing synced',
    install: OURS,
  },
  'bare-proxy': {
    name: 'bare uWS + undici proxy',
    kind: 'floor',
    version: () => versionsOf('undici')?.replace(/^/, `uWebSockets.js ${httpLibrary().version}, `),
    settings: 'one thread; 128 connections to the backend, no pipelining; no authentication, limits or audit',
    install: OURS,
  },
  map: {
    name: 'Map',
    kind: 'floor',
    version: () => process.version,
    settings: 'get and set of a plain Map by the address, no window, no verdict',
    install: 'Node',
  },
  'bare-frames': {
    name: 'bare frames',
    kind: 'floor',
    version: () => packageVersion('msgpackr'),
    settings: 'the same frames on one TCP connection; no handshake, bounds, heartbeats or errors',
    install: OURS,
  },
  'raw-puts': {
    name: 'raw LMDB puts',
    kind: 'floor',
    version: () => packageVersion('lmdb'),
    settings: 'rows as large as a turn’s, each client awaits its own put, synced as the journal is',
    install: OURS,
  },
  'native-ed25519': {
    name: 'native verifications',
    kind: 'floor',
    version: () => `OpenSSL ${process.versions.openssl}`,
    settings: 'node:crypto on the cores that the main thread leaves free, keys imported beforehand',
    install: 'Node',
  },
  'webauthn-library': {
    name: 'library',
    kind: 'floor',
    version: () => packageVersion('@simplewebauthn/server'),
    settings: '@simplewebauthn/server alone on one core, ES256',
    install: OURS,
  },
  'node-http': {
    name: 'node:http',
    kind: 'floor',
    version: () => process.version,
    settings: 'one thread; streams to and from files, nothing synced',
    install: 'Node',
  },
  sdk: {
    name: 'official SDK server',
    kind: 'peer',
    version: () => packageVersion('@modelcontextprotocol/sdk'),
    settings:
      'Streamable HTTP on its own Express application, one transport a session, JSON answers; no authentication, limits or audit',
    install: OURS,
  },
  nginx: {
    name: 'nginx',
    kind: 'peer',
    version: nginxVersion,
    settings:
      'one process (master_process off); sendfile, tcp_nopush, open_file_cache, no access log, 128 kept connections to a backend',
    install: 'the system’s package nginx',
  },
  'nginx-dav': {
    name: 'nginx DAV',
    kind: 'peer',
    version: nginxVersion,
    settings:
      'one process (master_process off); dav_methods PUT, client_body_buffer_size 512k, no access log, nothing synced',
    install: 'the system’s package nginx',
  },
  nchan: {
    name: 'nchan',
    kind: 'peer',
    version: nchanVersion,
    settings:
      'one worker process; EventSource subscribers of one channel, message buffer of 20, no access log',
    install: 'the system’s package libnginx-mod-nchan',
  },
  fastify: {
    name: '@fastify/http-proxy',
    kind: 'peer',
    version: () => versionsOf('@fastify/http-proxy', 'fastify'),
    settings:
      'one thread; undici with 128 connections, no pipelining; no log, authentication, limits or audit',
    install: PEERS_FOLDER,
  },
  tus: {
    name: '@tus/server',
    kind: 'peer',
    version: () => versionsOf('@tus/server', '@tus/file-store'),
    settings:
      'one thread; node:http and its file store; nothing synced, but for the subject that is named so',
    install: PEERS_FOLDER,
  },
  'tus-s3': {
    name: '@tus/server with @tus/s3-store',
    kind: 'peer',
    version: () => versionsOf('@tus/server', '@tus/s3-store'),
    settings: 'one thread; node:http, parts of 8 MiB, no checksums to the storage; parts go through files',
    install: PEERS_FOLDER,
  },
  'lib-storage': {
    name: 'node:http with @aws-sdk/lib-storage',
    kind: 'peer',
    version: () => versionsOf('@aws-sdk/lib-storage', '@aws-sdk/client-s3'),
    settings: 'one thread; parts of 8 MiB, two at once, no checksums to the storage',
    install: PEERS_FOLDER,
  },
  'rate-limiter': {
    name: 'rate-limiter-flexible',
    kind: 'peer',
    version: () => packageVersion('rate-limiter-flexible'),
    settings:
      'RateLimiterMemory, window of an hour: no counter ends meanwhile; one check after the other; its consume() is a promise',
    install: PEERS_FOLDER,
  },
  'better-sse': {
    name: 'better-sse',
    kind: 'peer',
    version: () => packageVersion('better-sse'),
    settings: 'one thread; node:http, one channel, events out of memory',
    install: PEERS_FOLDER,
  },
} as const satisfies Record<string, ParticipantRow>;

export type ParticipantId = keyof typeof PARTICIPANTS;

/** Returns the participant for the report; its version is looked up here */
export function optionalPeer(id: ParticipantId, peers: boolean): Participant {
  const { name, kind, settings, install, version: lookUp }: ParticipantRow = PARTICIPANTS[id];
  if (kind === 'peer' && !peers) return { name, kind, settings, leftOut: 'runs with --peers' };
  const version = lookUp();
  return version === undefined
    ? { name, kind, settings, leftOut: `not installed: ${install} brings it` }
    : { name, kind, settings, version };
}

/** Reads the version of an installed package, the peers' folder included. */
export function packageVersion(name: string): string | undefined {
  const file = FOLDERS.map((folder) => `${ROOT}${folder}/${name}/package.json`).find((path) =>
    existsSync(path),
  );
  if (file === undefined) return undefined;
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version?: string };
  return version;
}

/** `a 1.0.0, b 2.0.0`; undefined where one is missing. */
function versionsOf(...names: readonly string[]): string | undefined {
  const versions = names.map((name) => packageVersion(name));
  return versions.includes(undefined)
    ? undefined
    : names.map((name, index) => `${name} ${versions[index]}`).join(', ');
}

/** `nginx -v` answers on standard error. */
function nginxVersion(): string | undefined {
  const { error, stderr } = runSync('nginx', ['-v']);
  return error === undefined ? /nginx\/(\S+)/.exec(stderr)?.[1] : undefined;
}

/** The module says its version nowhere but in its package. */
function nchanVersion(): string | undefined {
  const nginx = nginxVersion();
  if (nginx === undefined || !existsSync(NCHAN_MODULE)) return undefined;
  const { stdout } = runSync('dpkg-query', ['--show', 'libnginx-mod-nchan']);
  return `${stdout?.trim().split('\t')[1] ?? 'of unknown version'}, nginx ${nginx}`;
}
