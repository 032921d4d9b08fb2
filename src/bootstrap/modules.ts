/** Addresses of the configured and simulated modules, and the catalog of their tools. */

import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import { keyPath } from '../config/load.ts';
import { isRecord } from '../config/source.ts';
import type { AccessPolicy } from '../domain/access.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { customRows, doubledRows, pointerInFile } from '../domain/custom-rows.ts';
import type { Fault } from '../domain/schema.ts';
import { type Catalog, type CatalogResult, LiveCatalog, loadCatalog } from '../io/mcp/catalog.ts';
import { BUILT_IN } from '../io/mcp/tools/built-in.ts';
import type { Log } from '../io/observability/log.ts';
import { SANDBOX_MODULES, type SandboxModuleName } from '../sandbox/modules.ts';
import { type SupervisedSandbox, superviseSandbox } from '../sandbox/supervisor.ts';
import { JournalUnusable } from './data-directory.ts';

/** Faults of the custom tools and resources of a file, before anything starts. */
export function checkCatalog(file: unknown, sandbox: boolean): readonly Fault[] {
  if (!isRecord(file)) return [];
  const modules = isRecord(file['Modules']) ? Object.keys(file['Modules']) : [];
  const names = [...modules, ...(sandbox ? SANDBOX_MODULES : [])];
  const rows = {
    tools: customRows(file, 'McpTools'),
    resources: customRows(file, 'McpResources'),
    profiles: file['McpProfiles'],
  };
  // Addresses are not called: a placeholder shows whether a row names a known module.
  const addresses = new Map(names.map((name) => [name, 'http://127.0.0.1:1']));
  const loaded = loadCatalog(BUILT_IN, rows, addresses, { personalReads: false });
  const faults = loaded.ok ? [] : loaded.faults;
  const placed = faults.map(({ path, message }) => ({ path: pointerInFile(file, path), message }));
  return [...doubledRows(file), ...placed].map(readable);
}

/** Faults of a catalog, by the path of the key in the file. */
export function faultsOf(result: CatalogResult): readonly Fault[] {
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

/** The modules of the sandbox that the configuration does not name. */
function sandboxNames(configuration: Configuration): SandboxModuleName[] {
  return configuration.sandbox
    ? SANDBOX_MODULES.filter((name) => configuration.modules[name] === undefined)
    : [];
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

/** In production mode a public key, which is no secret, should open only public data (decision 0094). */
export function warnOfPersonalReads({ policy }: Catalog, production: boolean, log: Log): void {
  if (!production || !policy.personalReads) return;
  log.write('personalReads', {
    detail:
      'McpBasicPersonalReads is true in production mode: a public key alone reads balances, history and addresses',
  });
}

function catalogOf(configuration: Configuration, started: Started): CatalogResult {
  const { mcpTools: tools, mcpResources: resources, mcpProfiles: profiles } = configuration;
  const rows = { tools, resources, profiles };
  return loadCatalog(BUILT_IN, rows, started.addresses, accessPolicy(configuration, started));
}

/** The configuration was checked at load, so a fault here is a bug. */
export function openCatalog(
  configuration: Configuration,
  addresses: ReadonlyMap<string, string>,
  log: Log,
): LiveCatalog {
  const loaded = catalogOf(configuration, { ...configuration, addresses });
  if (!loaded.ok) throw new Error(`the catalog was checked at load: ${JSON.stringify(faultsOf(loaded))}`);
  warnOfPersonalReads(loaded.catalog, configuration.production, log);
  return new LiveCatalog(loaded.catalog);
}

/** Values of the start that a reload does not change. */
export interface Started {
  /** Base address by module name. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly production: boolean;
  readonly modules: Configuration['modules'];
}

/** Replaces the catalog after a reload of the configuration. Returns the faults when the current one stays. */
export function reloadCatalog(
  catalog: LiveCatalog,
  configuration: Configuration,
  started: Started,
): readonly Fault[] {
  const faults = newModules(configuration, started.addresses);
  if (faults.length > 0) return faults;
  const result = catalogOf(configuration, started);
  catalog.reload(result);
  return faultsOf(result);
}

export async function startSandbox(
  configuration: Configuration,
  log: Log,
): Promise<SupervisedSandbox | undefined> {
  const modules = sandboxNames(configuration);
  if (modules.length === 0) return undefined;
  const supervision = {
    elapsed: () => performance.now(),
    timer: nodeSchedule.timer,
    onEnd: (error: unknown, waitMs: number) => log.write('sandboxEnded', { err: error, waitMs }),
    onReturn: () => log.write('sandboxRestarted'),
  };
  return superviseSandbox({ dataPath: configuration.dataPath, modules }, supervision).catch(
    (error: unknown) => {
      throw new JournalUnusable(
        `the sandbox cannot start: ${error instanceof Error ? error.message : String(error)}`,
      );
    },
  );
}

export function moduleAddresses(
  configuration: Configuration,
  sandbox: SupervisedSandbox | undefined,
): Map<string, string> {
  const addresses = new Map<string, string>();
  for (const [name, url] of Object.entries(sandbox?.modules ?? {})) addresses.set(name, url);
  for (const [name, module] of Object.entries(configuration.modules)) addresses.set(name, module.url);
  return addresses;
}

/** The event interface of a module. */
interface EventModule {
  readonly name: string;
  readonly url: string;
  /** Without one it cannot push. */
  readonly key: string | undefined;
  readonly poll: boolean;
}

/** All modules that may have events. Simulated modules are polled, and may push as well. */
export function eventModulesOf(
  configuration: Configuration,
  sandbox: SupervisedSandbox | undefined,
): EventModule[] {
  const configured = Object.entries(configuration.modules).map(([name, { url, key, poll }]) => ({
    name,
    url,
    key,
    poll,
  }));
  const sandboxed = Object.entries(sandbox?.modules ?? {}).map(([name, url]) => ({
    name,
    url,
    key: sandbox?.moduleKey,
    poll: true,
  }));
  return [...sandboxed, ...configured];
}
