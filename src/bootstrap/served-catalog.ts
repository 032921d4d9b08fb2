/**
 * The catalog that is served, and the other MCP servers whose tools are part of it: made at the start, again at a reload, and
 * when a server lists other tools.
 */
import { statSync } from 'node:fs';
import { mcpServer } from '../actors/admin/mcp-server.ts';
import type { GatewayActors } from '../actors/gateway-actors.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import { keyPath } from '../config/load.ts';
import { isRecord } from '../config/source.ts';
import type { AccessPolicy } from '../domain/access.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { defaultPrefix } from '../domain/config/mcp-servers.ts';
import { customRows, doubledRows, pointerInFile } from '../domain/custom-rows.ts';
import { GatewayError } from '../domain/errors.ts';
import type { EventLog } from '../domain/events/events.ts';
import type { Fault } from '../domain/schema.ts';
import { yieldToLoop } from '../io/mcp/batch.ts';
import { type Catalog, type CatalogResult, LiveCatalog, loadCatalog } from '../io/mcp/catalog.ts';
import type { CallTokens } from '../io/mcp/credentials/credentials.ts';
import { pointer } from '../io/mcp/input-schema.ts';
import { BUILT_IN } from '../io/mcp/tools/built-in.ts';
import { laterNames, type PersonalUpstream } from '../io/mcp/upstreams/offers.ts';
import { actorPins } from '../io/mcp/upstreams/pins.ts';
import { UpstreamServers } from '../io/mcp/upstreams/servers.ts';
import type { Offer, UpstreamTool } from '../io/mcp/upstreams/types.ts';
import type { Log } from '../io/observability/log.ts';
import { SANDBOX_MODULES } from '../sandbox/start.ts';

/** Faults of the custom tools and resources of a file, before anything starts. */
export function checkCatalog(file: unknown, sandbox: boolean): readonly Fault[] {
  if (!isRecord(file)) return [];
  const modules = isRecord(file['Modules']) ? Object.keys(file['Modules']) : [];
  const names = [...modules, ...(sandbox ? SANDBOX_MODULES : [])];
  const rows = {
    tools: customRows(file, 'McpTools'),
    resources: customRows(file, 'McpResources'),
    profiles: file['McpProfiles'],
    later: laterNames(serversOf(file)),
  };
  // Addresses are not called: a placeholder shows whether a row names a known module.
  const addresses = new Map(names.map((name) => [name, 'http://127.0.0.1:1']));
  const loaded = loadCatalog(BUILT_IN, rows, addresses, { personalReads: false });
  const faults = loaded.ok ? [] : loaded.faults;
  const placed = faults.map(({ path, message }) => ({ path: pointerInFile(file, path), message }));
  return [...doubledRows(file), ...placed, ...takenNames(file, rows.tools)].map(readable);
}

/** Servers of a file as written. */
function serversOf(file: Readonly<Record<string, unknown>>) {
  const servers = isRecord(file['McpServers']) ? file['McpServers'] : {};
  return Object.entries(servers).flatMap(([name, server]) => {
    if (!isRecord(server)) return [];
    const { prefix = defaultPrefix(name), tools } = server;
    const rows = isRecord(tools) && isRecord(tools['rows']) ? Object.keys(tools['rows']) : [];
    return typeof prefix === 'string' ? [{ name, prefix, rows }] : [];
  });
}

/** A tool of a server that the file names, and whose name a row has. */
function takenNames(
  file: Readonly<Record<string, unknown>>,
  custom: Readonly<Record<string, unknown>> = {},
): Fault[] {
  const isTaken = (name: string) => Object.hasOwn(BUILT_IN.tools, name) || Object.hasOwn(custom, name);
  return serversOf(file).flatMap(({ name, prefix, rows }) =>
    rows
      .filter((row) => isTaken(prefix + row))
      .map((row) => ({
        path: `/McpServers/${pointer(name)}/tools/rows/${pointer(row)}`,
        message: `${prefix}${row} is the name of another tool`,
      })),
  );
}

/** Faults of a catalog, by the path of the key in the file. */
function faultsOf(result: CatalogResult): readonly Fault[] {
  return result.ok ? [] : result.faults.map(readable);
}

function readable({ path, message }: Fault): Fault {
  return { path: keyPath(path), message };
}

/** Modules that are new or have another address: the gateway reads addresses only at a start. */
function newModules(configuration: Configuration, addresses: ReadonlyMap<string, string>): Fault[] {
  return Object.entries(configuration.modules)
    .filter(([name, module]) => addresses.get(name) !== module.url)
    .map(([name]) => ({ path: `Modules.${name}`, message: 'a changed module needs a restart' }));
}

/** `started` has the values of the start: a change of them in the file needs a restart. */
function accessPolicy(
  { mcpBasicPersonalReads }: Configuration,
  { production, modules }: Omit<Started, 'addresses'>,
): AccessPolicy {
  const named = Object.entries(modules).filter(([, { encodedSlashes }]) => encodedSlashes);
  const encodedSlashes = new Set(named.map(([name]) => name));
  return { personalReads: mcpBasicPersonalReads ?? !production, encodedSlashes };
}

/** In production mode a public key, which is no secret, should open only public data (decision 0011). */
function warnOfPersonalReads({ policy }: Catalog, production: boolean, log: Log): void {
  if (!production || !policy.personalReads) return;
  log.write('personalReads', {
    detail:
      'McpBasicPersonalReads is true in production mode: a public key alone reads balances, history and addresses',
  });
}

function catalogOf(
  configuration: Configuration,
  started: Started,
  upstream: readonly UpstreamTool[] = [],
  offers: readonly Offer[] = [],
  personal: readonly PersonalUpstream[] = [],
): CatalogResult {
  const { mcpTools: tools, mcpResources: resources, mcpProfiles: profiles, mcpServers } = configuration;
  const later = laterNames(Object.entries(mcpServers).map(([name, { prefix }]) => ({ name, prefix })));
  const rows = { tools, resources, profiles, upstream, offers, personal, later };
  return loadCatalog(BUILT_IN, rows, started.addresses, accessPolicy(configuration, started));
}

/** Values of the start that a reload does not change. */
interface Started {
  /** Base address by module name. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly production: boolean;
  readonly modules: Configuration['modules'];
}

const EVENT_TOOLS_MAX = 20;

interface CatalogOptions {
  readonly log: Log;
  readonly version: string;
}

/** Parts that are started after the catalog. */
interface CatalogParts {
  readonly actors: GatewayActors;
  readonly eventLog: Pick<EventLog, 'publish'>;
  readonly staff: { admins(): readonly string[] };
  readonly credentials: CallTokens;
}

/** `parts` is asked once links are open. */
export function openCatalog(
  configuration: Configuration,
  addresses: ReadonlyMap<string, string>,
  options: CatalogOptions,
  parts: () => CatalogParts,
): { readonly served: ServedCatalog; readonly catalog: LiveCatalog } {
  const served = new ServedCatalog(configuration, addresses, options, parts);
  return { served, catalog: served.live };
}

/** Tells every admin of tools that wait for a decision. */
function announce({ staff, eventLog }: CatalogParts, server: string, tools: readonly string[]): void {
  const data = { server, tools: tools.slice(0, EVENT_TOOLS_MAX).join(' ') };
  for (const userId of staff.admins())
    eventLog.publish({ type: 'McpServerChanged', userId, data }).catch((error: unknown) => {
      // A full or stopping journal: the log line and the panel show the tools all the same.
      if (!(error instanceof GatewayError)) throw error;
    });
}

/** One gateway serves a data folder, which no other folder of the machine can be taken for. */
function ownerOf(dataPath: string): string {
  const { dev, ino } = statSync(dataPath, { bigint: true });
  return `${dev}-${ino}`;
}

export class ServedCatalog {
  readonly live: LiveCatalog;
  readonly servers: UpstreamServers;
  readonly #started: Started;
  readonly #log: Log;
  readonly #parts: () => CatalogParts;
  #configuration: Configuration;

  /** The configuration was checked at load, so a fault here is a bug. */
  constructor(
    configuration: Configuration,
    addresses: ReadonlyMap<string, string>,
    { log, version }: CatalogOptions,
    parts: () => CatalogParts,
  ) {
    this.#started = { ...configuration, addresses };
    this.#log = log;
    this.#parts = parts;
    this.#configuration = configuration;
    const loaded = catalogOf(configuration, this.#started);
    if (!loaded.ok) throw new Error(`the catalog was checked at load: ${JSON.stringify(faultsOf(loaded))}`);
    warnOfPersonalReads(loaded.catalog, configuration.production, log);
    this.live = new LiveCatalog(loaded.catalog);
    this.servers = new UpstreamServers({
      log,
      version,
      monotonicMs: () => performance.now(),
      random: Math.random,
      timer: nodeSchedule.timer,
      yieldToLoop,
      pins: actorPins(() => parts().actors),
      owner: () => ownerOf(configuration.dataPath),
      tokens: {
        connectedMs: (...of) => parts().credentials.connectedMs(...of),
        find: (...of) => parts().credentials.find(...of),
        renew: (...of) => parts().credentials.renew(...of),
      },
      isAdmin: (userId) => parts().staff.admins().includes(userId),
      onTools: () => this.#rebuild(),
      onFound: (server, tools) => announce(parts(), server, tools),
    });
  }

  /** `McpServers` as they are now. */
  get configured(): Configuration['mcpServers'] {
    return this.#configuration.mcpServers;
  }

  /** Opens the links to other MCP servers. Nothing waits for them. */
  open(): void {
    this.#parts().actors.onApplied(mcpServer, (server) => this.servers.applied(server));
    this.servers.follow(this.#configuration.mcpServers);
  }

  /** Called after a reload of the configuration. Returns the faults when the current catalog stays. */
  reload(configuration: Configuration): readonly Fault[] {
    const faults = newModules(configuration, this.#started.addresses);
    if (faults.length > 0) return faults;
    const trial = catalogOf(configuration, this.#started);
    if (!trial.ok) return faultsOf(trial);
    this.#configuration = configuration;
    this.servers.follow(configuration.mcpServers);
    this.#rebuild();
    warnOfPersonalReads(this.live.current, this.#started.production, this.#log);
    return [];
  }

  #rebuild(): void {
    const { servers } = this;
    const result = catalogOf(
      this.#configuration,
      this.#started,
      servers.tools(),
      servers.offers(),
      servers.personal(),
    );
    const faults = this.live.reload(result);
    if (faults.length > 0) throw new Error(`the catalog was checked before: ${JSON.stringify(faults)}`);
  }
}
