/** Where modules are and which tools they give: configured modules, the sandbox for the others, the catalogue. */
import type { Configuration } from './domain/configuration.ts';
import type { Fault } from './domain/schema.ts';
import type { Log } from './io/log.ts';
import { type CatalogueResult, loadCatalogue } from './io/mcp/catalogue.ts';
import { BUILT_IN } from './io/mcp/tools/built-in.ts';
import { type RunningSandbox, startSandbox } from './sandbox/start.ts';
import { SANDBOX_MODULES, type SandboxModuleName } from './sandbox/store.ts';

/** Faults of the custom tools and resources, before anything is started. */
export function checkCatalogue(configuration: Configuration): readonly Fault[] {
  const result = catalogueOf(
    configuration,
    new Map(moduleNames(configuration).map((name) => [name, 'http://127.0.0.1:1'])),
  );
  return result.ok
    ? []
    : result.faults.map(({ path, message }) => ({ path: path.slice(1).replaceAll('/', '.'), message }));
}

function moduleNames(configuration: Configuration): string[] {
  return [...new Set([...Object.keys(configuration.modules), ...sandboxNames(configuration)])];
}

/** The modules that the sandbox stands in for: those it has and the configuration does not name. */
function sandboxNames(configuration: Configuration): SandboxModuleName[] {
  return configuration.sandbox
    ? SANDBOX_MODULES.filter((name) => configuration.modules[name] === undefined)
    : [];
}

export function catalogueOf(
  configuration: Configuration,
  addresses: ReadonlyMap<string, string>,
): CatalogueResult {
  const rows = { tools: configuration.mcpTools, resources: configuration.mcpResources };
  return loadCatalogue(BUILT_IN, rows, addresses);
}

export async function startStandIns(
  configuration: Configuration,
  log: Log,
): Promise<RunningSandbox | undefined> {
  const modules = sandboxNames(configuration);
  if (modules.length === 0) return undefined;
  const sandbox = await startSandbox({ dataPath: configuration.dataPath, modules });
  sandbox.crashed.then(
    (error) => log.error({ err: error }, 'the sandbox ended; its modules are down'),
    (error: unknown) => log.error({ err: error }, 'the sandbox ended without a word'),
  );
  return sandbox;
}

export function moduleAddresses(
  configuration: Configuration,
  sandbox: RunningSandbox | undefined,
): Map<string, string> {
  const addresses = new Map<string, string>();
  for (const [name, url] of Object.entries(sandbox?.modules ?? {})) addresses.set(name, url);
  for (const [name, module] of Object.entries(configuration.modules)) addresses.set(name, module.url);
  return addresses;
}
