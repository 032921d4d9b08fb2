/**
 * Checks what a schema cannot: addresses, ranges, host names, keys. Runs over the file as written, even a faulty one, so
 * that its faults are reported together with those of the schema.
 */
import { domainToASCII } from 'node:url';
import ipaddr from 'ipaddr.js';
import { DEFAULTS, MODULE_NAME, RESERVED_NAMES } from '../domain/config/configuration.ts';
import { SECRET_PATHS } from '../domain/config/keys.ts';
import { parseHostPort } from '../domain/host-port.ts';
import { decodeBase64url } from '../domain/ids.ts';
import { isPrivateRedirect } from '../domain/oauth/clients.ts';
import type { Fault } from '../domain/schema.ts';
import { decodeSealKey } from '../domain/seal-key.ts';
import { isPageOrigin } from '../domain/site.ts';
import { mcpServerFaults } from './mcp-servers.ts';
import { oauthFaults } from './oauth.ts';
import { foreignFault } from './secrets.ts';
import { isRecord } from './source.ts';

const PUBLIC_KEY_BYTES = 32;

type Judge = (value: string) => string | undefined;

const isUrl: Judge = (value) => {
  if (!URL.canParse(value)) return 'is not a URL';
  const { username, password, hash } = new URL(value);
  return username + password + hash === '' ? undefined : 'must not hold a user name, password or fragment';
};

const isOrigin: Judge = (value) => {
  const fault = isUrl(value);
  if (fault !== undefined) return fault;
  const { pathname, search } = new URL(value);
  return pathname === '/' && search === '' ? undefined : 'is an origin: scheme, host and port only';
};

const isRange: Judge = (value) => {
  const valid = value.includes('/') ? ipaddr.isValidCIDR(value) : ipaddr.isValid(value);
  // ipaddr.js reads "1.2" as 1.0.0.2, which is most likely a mistake.
  const fourParts = value.includes(':') || /^\d+\.\d+\.\d+\.\d+(\/|$)/.test(value);
  return valid && fourParts ? undefined : 'is not an address or a range like 10.0.0.0/8';
};

const isHost: Judge = (value) =>
  /^[a-z0-9.-]+$/i.test(domainToASCII(value)) ? undefined : 'is not a host name';

const isPrivate: Judge = (value) =>
  isPrivateRedirect(value)
    ? undefined
    : 'is not a private URI with its authority, like cursor://anysphere.cursor-mcp/oauth/';

const isPublicKey: Judge = (value) =>
  decodeBase64url(value, PUBLIC_KEY_BYTES) === undefined ? 'is not 32 bytes in base64url' : undefined;

const isSealKey: Judge = (value) =>
  decodeSealKey(value) === undefined ? 'is not 32 bytes in base64url or hex' : undefined;

const isHostPort: Judge = (value) =>
  parseHostPort(value) === undefined ? 'is not an address with a port like 10.0.0.1:8090' : undefined;

const isReachable: Judge = (value) =>
  isHostPort(value) ?? (parseHostPort(value)?.port === 0 ? 'names no port' : undefined);

/** Header fields that the gateway reads for another purpose, or forwards. */
const OTHER_FIELDS =
  /^x-(?:forwarded-.*|request-id|app-id|publickey|signature|timestamp|module-key|mcp-.*)$/i;

const isFreeField: Judge = (value) =>
  OTHER_FIELDS.test(value) ? 'has another meaning; X-Accel is usual' : undefined;

/** Framing fields are the client's own. */
const isFieldName: Judge = (value) =>
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(value) && !isHopByHopName(value)
    ? undefined
    : 'the key is not the name of a header that can be set';

const isHopByHopName = (value: string) =>
  /^(?:host|connection|content-length|content-type|transfer-encoding)$/i.test(value);

const isFieldValue: Judge = (value) =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)
    ? undefined
    : 'is not ASCII text without blanks at its ends';

/** Neither could be handed to a process. */
const isArgument: Judge = (value) => (value.includes('\0') ? 'has a zero character' : undefined);

const isVariableName: Judge = (value) =>
  /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(value) ? undefined : 'the key is not the name of a variable';

const isThreshold: Judge = (value) =>
  /^(0|[1-9][0-9]{0,18})$/.test(value) ? undefined : 'the key is not a decimal number';

const MODULE_NAME_FORM = new RegExp(MODULE_NAME);

const isServerName: Judge = (value) =>
  MODULE_NAME_FORM.test(value)
    ? undefined
    : 'the name must be a lower-case letter, then up to 31 of a to z, 0 to 9 and "-"';

const isModuleName: Judge = (value) =>
  RESERVED_NAMES.has(value) ? 'the name is the first segment of paths of the gateway' : isServerName(value);

/** Path of a value or of a list's values (`*`), and what it must be. A path that ends in `!` judges the keys there. */
const CHECKS: readonly (readonly [path: string, judge: Judge])[] = [
  ['BaseUrl', isOrigin],
  ['TrustedProxies.*', isRange],
  ['Modules.!', isModuleName],
  ['Modules.*.url', isUrl],
  ['McpServers.!', isServerName],
  ['McpServers.*.url', isUrl],
  ['McpServers.*.authNetworks.*', isRange],
  ['McpServers.*.headers.!', isFieldName],
  ['McpServers.*.headers.*', isFieldValue],
  ['McpServers.*.command.*', isArgument],
  ['McpServers.*.env.!', isVariableName],
  ['McpServers.*.env.*', isArgument],
  ['OAuthClientHosts.*', isHost],
  ['OAuthDocumentAllow.*', isRange],
  ['OAuthPrivateRedirects.*', isPrivate],
  ['Fido2.serverDomain', isHost],
  ['Fido2.origins.*', (value) => (isPageOrigin(value) ? isOrigin(value) : undefined)],
  ['FileServers.!', isThreshold],
  ['FileServers.*.Host', isUrl],
  ['FileServers.*.S3.Endpoint', isUrl],
  ['SendfileBehind.header', isFreeField],
  ['WebhookAllow.*', isRange],
  ['AllowedOrigins.*', isOrigin],
  ['Admin.publicKeys.*', isPublicKey],
  ['Admin.allow.*', isRange],
  ['Internal.allowHosts.*', isHost],
  ['Secrets.sealKey', isSealKey],
  ['Secrets.sealKey.*', isSealKey],
  ['Cluster.listen', isHostPort],
  ['Cluster.advertise', isReachable],
  ['Cluster.secret', isSealKey],
  ['Cluster.secret.*', isSealKey],
  ['Log.sample.!', (value) => (value.startsWith('/') ? undefined : 'expected the path of a route')],
  ['Telemetry.url', isUrl],
  ['Telemetry.headers.!', isFieldName],
  ['Telemetry.headers.*', isFieldValue],
];

/** Secrets that would be taken as written, although their form names them in the store of another program. */
export function foreignSecrets(file: unknown): Fault[] {
  const faults: Fault[] = [];
  for (const path of SECRET_PATHS) walk(file, path.split('.'), '', foreignFault, faults);
  return faults;
}

/** Every unusable value with the path of its key. Values of another type are the schema's business. */
export function valueFaults(file: unknown): Fault[] {
  const faults: Fault[] = [];
  for (const [path, judge] of CHECKS) walk(file, path.split('.'), '', judge, faults);
  return [
    ...faults,
    ...oauthFaults(file),
    ...mcpServerFaults(file),
    ...fileServerFaults(file),
    ...stagingFaults(file),
    ...proxyFaults(file),
    ...portFaults(file),
    ...publicFaults(file),
    ...contactSyncFaults(file),
  ];
}

/** Two listeners of the file on one port: the second could not be opened. Port 0 is a free one for each. */
function portFaults(file: unknown): Fault[] {
  const [listen, internal] = [sectionOf(file, 'Listen'), sectionOf(file, 'Internal')];
  const port = listen['port'];
  const hosts = [listen['host'] ?? DEFAULTS['Listen.host'], internal['host'] ?? DEFAULTS['Internal.host']];
  const isShared = hosts[0] === hosts[1] || hosts.some((host) => host === '0.0.0.0' || host === '::');
  if (typeof port !== 'number' || port === 0 || port !== internal['port'] || !isShared) return [];
  return [{ path: 'Internal.port', message: 'is the port of Listen' }];
}

/** A prefix outside of its module would open nothing. */
function publicFaults(file: unknown): Fault[] {
  return Object.entries(sectionOf(file, 'Modules')).flatMap(([name, module]) => {
    const prefixes = isRecord(module) && Array.isArray(module['public']) ? module['public'] : [];
    return prefixes.flatMap((prefix: unknown, at) =>
      typeof prefix !== 'string' || `${prefix}/`.startsWith(`/${name}/`)
        ? []
        : [{ path: `Modules.${name}.public.${at}`, message: `is not below /${name}, where this module is` }],
    );
  });
}

/** Devices are sent to one module, and a token opens that one. */
function contactSyncFaults(file: unknown): Fault[] {
  const modules = Object.entries(sectionOf(file, 'Modules'));
  const [, ...more] = modules.filter(([, module]) => isRecord(module) && module['contactSync'] === true);
  return more.map(([name]) => ({
    path: `Modules.${name}.contactSync`,
    message: 'another module has it: contacts are synced with one',
  }));
}

/** A folder that nothing is staged in is rarely meant. */
function stagingFaults(file: unknown): Fault[] {
  if (!isRecord(file) || file['FileStagingPath'] === undefined) return [];
  const isUsed =
    file['LocalFileStoragePath'] === undefined && Object.keys(sectionOf(file, 'FileServers')).length > 0;
  return isUsed
    ? []
    : [{ path: 'FileStagingPath', message: 'needs FileServers, and no LocalFileStoragePath: it would win' }];
}

/** A server is one thing. The host name of a bucket is below that of its endpoint, and below an address there is none. */
function fileServerFaults(file: unknown): Fault[] {
  return Object.entries(sectionOf(file, 'FileServers')).flatMap(([above, server]) => {
    const path = `FileServers.${above}`;
    if (!isRecord(server)) return [];
    if ((server['Host'] === undefined) === (server['S3'] === undefined))
      return [{ path, message: 'needs Host or S3, and not both' }];
    const { Endpoint: endpoint, PathStyle: pathStyle } = sectionOf(server, 'S3');
    const host = URL.canParse(String(endpoint)) ? new URL(String(endpoint)).hostname : '';
    return pathStyle === true || !ipaddr.isValid(host.replace(/^\[|\]$/g, ''))
      ? []
      : [{ path: `${path}.S3.PathStyle`, message: 'must be true: the Endpoint is an address' }];
  });
}

function sectionOf(file: unknown, key: string): Readonly<Record<string, unknown>> {
  const section = isRecord(file) ? file[key] : undefined;
  return isRecord(section) ? section : {};
}

/**
 * Without a trusted peer a PROXY protocol header would end every connection, and no file would be handed over. With TLS
 * uWebSockets.js would look for that header inside of TLS, where no proxy writes it.
 */
function proxyFaults(file: unknown): Fault[] {
  if (!isRecord(file)) return [];
  const { Listen: listen, TrustedProxies: proxies, SendfileBehind: sendfile } = file;
  const takesHeader = isRecord(listen) && listen['proxyProtocol'] === true;
  const faults: Fault[] = [];
  if (takesHeader && listen['tls'] !== undefined)
    faults.push({
      path: 'Listen.proxyProtocol',
      message: 'cannot be used with Listen.tls: end TLS at the proxy',
    });
  if (Array.isArray(proxies) && proxies.length > 0) return faults;
  const keys = [
    ...(takesHeader ? ['Listen.proxyProtocol'] : []),
    ...(sendfile === undefined ? [] : ['SendfileBehind']),
  ];
  const message = 'needs TrustedProxies: the peers whose header counts';
  return [...faults, ...keys.map((path) => ({ path, message }))];
}

function walk(value: unknown, steps: readonly string[], at: string, judge: Judge, faults: Fault[]): void {
  const [step, ...rest] = steps;
  if (step === undefined) {
    const message = typeof value === 'string' ? judge(value) : undefined;
    if (message !== undefined) faults.push({ path: at, message });
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    const below = at === '' ? key : `${at}.${key}`;
    if (step === '!') walk(key, rest, below, judge, faults);
    else if (step === '*' || (step === key && isRecord(value))) walk(child, rest, below, judge, faults);
  }
}
