/**
 * Static configuration: flags, environment and file read once, checked by schema, all faults reported at once with
 * the path of their key, and frozen. The only reader of the environment.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import {
  CONTACT_SYNC_METHODS,
  type Configuration,
  DEFAULTS,
  type ModuleConfiguration,
} from '../domain/config/configuration.ts';
import { type ConfigurationFile, configurationSchema } from '../domain/config/file.ts';
import { resolveFileServer } from '../domain/config/file-servers.ts';
import { keysBelow } from '../domain/config/keys.ts';
import { resolveMcpServer } from '../domain/config/mcp-servers.ts';
import { customRows } from '../domain/custom-rows.ts';
import { withoutTrailing } from '../domain/host-port.ts';
import { LOOPBACK_RANGES } from '../domain/limits/networks.ts';
import { compileSchema, type Fault, UNKNOWN_KEY } from '../domain/schema.ts';
import {
  checkSetting,
  isSettingName,
  SETTING_NAMES,
  type SettingName,
  type SettingValue,
} from '../domain/settings/settings.ts';
import { resolveCluster } from './cluster.ts';
import { environmentTwins, twinName } from './environment.ts';
import { resolveOAuth } from './oauth.ts';
import { resolveSecrets } from './secrets.ts';
import { createLineFinder, isRecord, parseSource } from './source.ts';
import { unknownMessage } from './suggestion.ts';
import { foreignSecrets, valueFaults } from './validate.ts';

/** Unusable flags: exit code 64. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export interface Flags {
  readonly config?: string;
  readonly port?: number;
  readonly internalPort?: number;
  readonly data?: string;
  readonly sandbox: boolean;
  readonly newJournal: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;
export type ConfigurationResult =
  | { readonly ok: true; readonly configuration: Configuration }
  | { readonly ok: false; readonly faults: readonly PlacedFault[] };

/** `place`: the line of the file, or the variable that wins over it. */
export interface PlacedFault extends Fault {
  readonly place?: string;
}

const PORT_PATTERN = /^(?:0|[1-9][0-9]{0,4})$/;
const fileSchema = compileSchema(configurationSchema);

/** Reads the command line of the server. Throws `UsageError` with one clear sentence. */
export function parseFlags(args: readonly string[]): Flags {
  let values: Record<string, string | boolean | undefined>;
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        config: { type: 'string' },
        port: { type: 'string' },
        'internal-port': { type: 'string' },
        data: { type: 'string' },
        sandbox: { type: 'boolean' },
        'new-journal': { type: 'boolean' },
      },
    }));
  } catch (error) {
    throw new UsageError(
      error instanceof Error ? (error.message.split('. ')[0] ?? error.message) : String(error),
    );
  }
  return {
    ...textFlag('config', values['config']),
    ...textFlag('data', values['data']),
    ...portFlag('port', 'port', values['port']),
    ...portFlag('internalPort', 'internal-port', values['internal-port']),
    sandbox: values['sandbox'] === true,
    newJournal: values['new-journal'] === true,
  };
}

function textFlag(name: string, value: string | boolean | undefined): Record<string, string> {
  if (value === undefined) return {};
  if (typeof value !== 'string' || value === '') throw new UsageError(`--${name} needs a value`);
  return { [name]: value };
}

function portFlag(field: string, flag: string, value: string | boolean | undefined): Record<string, number> {
  if (value === undefined) return {};
  if (typeof value !== 'string' || !PORT_PATTERN.test(value) || Number(value) > 65_535) {
    throw new UsageError(`--${flag} needs a port from 0 to 65535`);
  }
  return { [field]: Number(value) };
}

/** The environment of this process; read here alone. */
export function processEnvironment(): Environment {
  return process.env;
}

/** Checks the file as written, valid or not; `sandbox`: whether sandbox modules will run. */
export type FileCheck = (file: unknown, sandbox: boolean) => readonly Fault[];

/**
 * Merges flag over environment over file over default and checks all of it, `checks` included. Never throws for what
 * a user wrote.
 */
export function loadConfiguration(
  flags: Flags,
  environment: Environment,
  checks: readonly FileCheck[] = [],
): ConfigurationResult {
  const faults: Fault[] = [];
  const { value, source } = flags.config === undefined ? { value: {} } : readFile(flags.config, faults);
  const merged = environmentTwins(value, environment, faults);
  const file = resolveSecrets(merged, environment, faults);
  const sandbox = flags.sandbox || flags.config === undefined;
  const settings = readSettings(isRecord(file) ? file['Settings'] : undefined, faults);
  const found = [
    ...foreignSecrets(file),
    ...fileSchema.faults(file).map(inWords),
    ...valueFaults(file),
    ...checks.flatMap((check) => check(file, sandbox)),
  ];
  // One fault a key is enough: a missing secret is not also too short.
  const named = new Set(faults.map(({ path }) => path).filter((path) => path !== ''));
  for (const fault of found) {
    if (named.has(fault.path)) continue;
    if (fault.path !== '') named.add(fault.path);
    faults.push(fault);
  }
  if (faults.length > 0 || !fileSchema.check(file)) {
    return { ok: false, faults: withPlaces(faults, flags.config, source, environment) };
  }
  return { ok: true, configuration: deepFreeze({ ...resolve(file, settings, flags, environment), sandbox }) };
}

function readFile(path: string, faults: Fault[]): { value: unknown; source?: string } {
  let source: string;
  try {
    source = readFileSync(path, 'utf8');
  } catch (error) {
    faults.push({
      path: '',
      message: `cannot read ${path}: ${error instanceof Error ? error.message : 'unreadable'}`,
    });
    return { value: {} };
  }
  const { value, faults: found } = parseSource(path, source);
  faults.push(...found);
  if (found.length === 0 && !isRecord(value)) faults.push({ path: '', message: 'expected an object' });
  if (!isRecord(value)) return { value: {}, source };
  // Names the schema for editors (`print-schema`).
  const { $schema: schema, ...keys } = value;
  return { value: typeof schema === 'string' ? keys : value, source };
}

/** Adds where each fault was written: the line of the file, or the variable that won over it. */
function withPlaces(
  faults: readonly Fault[],
  file: string | undefined,
  source: string | undefined,
  environment: Environment,
): PlacedFault[] {
  const lineOf = source === undefined ? () => undefined : createLineFinder(source);
  return faults.map(({ path, message }) => {
    if (path === '') return { path, message };
    const twin = twinName(path.split('.'));
    const line = lineOf(path);
    if (environment[twin] !== undefined) return { path, message, place: twin };
    return line === undefined ? { path, message } : { path, message, place: `${file}:${line}` };
  });
}

function readSettings(value: unknown, faults: Fault[]): Partial<Record<SettingName, SettingValue>> {
  const settings: Partial<Record<SettingName, SettingValue>> = {};
  if (!isRecord(value)) return settings;
  for (const [name, given] of Object.entries(value)) {
    const path = `Settings.${name}`;
    if (!isSettingName(name)) {
      faults.push({ path, message: unknownMessage('setting', name, SETTING_NAMES) });
      continue;
    }
    const check = checkSetting(name, given);
    if (check.ok) settings[name] = check.value;
    else faults.push({ path, message: check.message });
  }
  return settings;
}

/** Writes a fault with the path of the file, and for an unknown key with the known one that it may stand for. */
function inWords({ path, message }: Fault): Fault {
  const at = keyPath(path);
  if (message !== UNKNOWN_KEY) return { path: at, message };
  const steps = at.split('.');
  return { path: at, message: unknownMessage('key', steps.at(-1) ?? '', keysBelow(steps.slice(0, -1))) };
}

/** The JSON pointer `/Listen/port` as a key path: `Listen.port`. */
export function keyPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.');
}

function resolve(
  file: ConfigurationFile,
  settings: Partial<Record<SettingName, SettingValue>>,
  flags: Flags,
  environment: Environment,
): Omit<Configuration, 'sandbox'> {
  const production = file.Production ?? DEFAULTS.Production;
  return {
    project: file.Project ?? DEFAULTS.Project,
    // The issuer: one spelling, however it is written.
    baseUrl: file.BaseUrl === undefined ? undefined : new URL(file.BaseUrl).origin,
    production,
    listen: {
      host: file.Listen?.host ?? DEFAULTS['Listen.host'],
      port: flags.port ?? file.Listen?.port ?? DEFAULTS['Listen.port'],
      tls: file.Listen?.tls,
      receiveBufferBytes: file.Listen?.receiveBufferBytes ?? DEFAULTS['Listen.receiveBufferBytes'],
      proxyProtocol: file.Listen?.proxyProtocol ?? DEFAULTS['Listen.proxyProtocol'],
    },
    internal: {
      host: file.Internal?.host ?? DEFAULTS['Internal.host'],
      port: flags.internalPort ?? file.Internal?.port ?? DEFAULTS['Internal.port'],
      allowHosts: file.Internal?.allowHosts ?? [],
    },
    dataPath: flags.data ?? file.DataPath ?? DEFAULTS.DataPath,
    trustedProxies: file.TrustedProxies ?? [],
    modules: resolveModules(file),
    mcpTools: customRows(file, 'McpTools') ?? {},
    mcpResources: customRows(file, 'McpResources') ?? {},
    mcpProfiles: file.McpProfiles ?? {},
    mcpServers: Object.fromEntries(
      Object.entries(file.McpServers ?? {}).map(([name, server]) => [
        name,
        resolveMcpServer(name, server, environment),
      ]),
    ),
    mcpBasicPersonalReads: file.McpBasicPersonalReads,
    ...resolveOAuth(file, production),
    fido2: {
      serverDomain: file.Fido2?.serverDomain,
      serverName: file.Fido2?.serverName ?? DEFAULTS['Fido2.serverName'],
      timestampDriftToleranceMs:
        file.Fido2?.timestampDriftTolerance ?? DEFAULTS['Fido2.timestampDriftTolerance'],
      serverIcon: file.Fido2?.serverIcon ?? DEFAULTS['Fido2.serverIcon'],
      origins: file.Fido2?.origins,
    },
    localFileStoragePath: file.LocalFileStoragePath,
    fileStagingPath: file.FileStagingPath,
    fileServers: Object.fromEntries(
      Object.entries(file.FileServers ?? {}).map(([above, server]) => [above, resolveFileServer(server)]),
    ),
    sendfileBehind: file.SendfileBehind,
    settings,
    webhookAllow: file.WebhookAllow ?? (production ? [] : LOOPBACK_RANGES),
    allowedOrigins: file.AllowedOrigins ?? [],
    admin: {
      publicKeys: file.Admin?.publicKeys ?? [],
      allow: file.Admin?.allow ?? [...DEFAULTS['Admin.allow']],
    },
    sealKeys: [file.Secrets?.sealKey ?? []].flat(),
    sealKeyLost: file.Secrets?.sealKeyLost ?? DEFAULTS['Secrets.sealKeyLost'],
    cluster: resolveCluster(file),
    workerThreads: file.Workers?.threads ?? DEFAULTS['Workers.threads'],
    log: {
      requests: file.Log?.requests ?? DEFAULTS['Log.requests'],
      sample: file.Log?.sample ?? {},
      format: file.Log?.format ?? DEFAULTS['Log.format'],
      level: file.Log?.level ?? DEFAULTS['Log.level'],
    },
    telemetry: file.Telemetry && {
      url: file.Telemetry.url,
      headers: file.Telemetry.headers ?? {},
      sampleRatio: file.Telemetry.sampleRatio ?? DEFAULTS['Telemetry.sampleRatio'],
      metricsSeconds: file.Telemetry.metricsSeconds ?? DEFAULTS['Telemetry.metricsSeconds'],
      logs: file.Telemetry.logs ?? DEFAULTS['Telemetry.logs'],
    },
    staticPath: file.StaticPath,
  };
}

function resolveModules(file: ConfigurationFile): Record<string, ModuleConfiguration> {
  const modules = Object.entries(file.Modules ?? {}).map(([name, given]) => {
    const {
      key,
      poll = false,
      public: open = [],
      methods = [],
      encodedSlashes = false,
      contactSync = false,
      accountEvents = false,
    } = given;
    const url = withoutTrailing(given.url, '/');
    const asked = contactSync ? [...new Set([...methods, ...CONTACT_SYNC_METHODS])] : methods;
    const flags = { encodedSlashes, contactSync, accountEvents };
    return [name, { url, key, poll, public: open, methods: asked, ...flags }] as const;
  });
  return Object.fromEntries(modules);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}
