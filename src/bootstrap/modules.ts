/** Addresses of the configured and simulated modules. */

import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import { CONTACT_SYNC_METHODS, type Configuration } from '../domain/config/configuration.ts';
import type { KnownModule } from '../io/admin/modules.ts';
import type { Log } from '../io/observability/log.ts';
import type { ModuleRules } from '../io/proxy/reach.ts';
import { SANDBOX_MODULES, type SandboxModuleName, type SandboxThread } from '../sandbox/start.ts';
import { type SupervisedSandbox, superviseSandbox } from '../sandbox/supervisor.ts';
import { JournalUnusable } from './data-directory.ts';

/** Devices sync contacts with the sandbox where no module of the configuration has them. */
const CONTACTS: SandboxModuleName = 'contacts';

/** The modules of the sandbox that the configuration does not name. */
function sandboxNames({ sandbox, modules }: Configuration): SandboxModuleName[] {
  if (!sandbox) return [];
  const isSynced = Object.values(modules).some(({ contactSync }) => contactSync);
  return SANDBOX_MODULES.filter((name) => modules[name] === undefined && !(name === CONTACTS && isSynced));
}

/** Returns the paths of a module that allow more than those of others. */
export function moduleRules(
  configuration: Configuration,
  sandbox: SupervisedSandbox | undefined,
): Map<string, ModuleRules> {
  const rules = new Map<string, ModuleRules>(Object.entries(configuration.modules));
  if (sandbox?.modules[CONTACTS] !== undefined)
    rules.set(CONTACTS, { contactSync: true, methods: CONTACT_SYNC_METHODS });
  return rules;
}

/** `thread`: one that has been loading since before the gateway was. */
export async function startSandbox(
  configuration: Configuration,
  log: Log,
  thread: SandboxThread | undefined,
): Promise<SupervisedSandbox | undefined> {
  const modules = sandboxNames(configuration);
  if (modules.length === 0) {
    await thread?.worker.terminate();
    return undefined;
  }
  const supervision = {
    thread,
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

export function knownModulesOf(
  configuration: Configuration,
  sandbox: SupervisedSandbox | undefined,
  keySince: ReadonlyMap<string, number>,
): KnownModule[] {
  return eventModulesOf(configuration, sandbox).map(({ name, url, poll }) => ({
    ...{ name, url },
    keySinceMs: keySince.get(name),
    polled: poll,
  }));
}

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
