/** The modules as the panel shows them: what this node knows of each, and the use of all nodes by module. */
import type { EventLog } from '../../domain/events/events.ts';
import { DAY_MS } from '../../domain/time.ts';
import type { ModuleClient } from '../modules/client.ts';
import { mergeUsed, type UsedName } from './history/merge.ts';
import type { Used } from './history/usage.ts';

/** The newest events that are looked at for the last one of each module. */
const EVENTS_LOOKED_AT = 1_000;

/** Age of a key of a module from which it is time for another one. */
const KEY_OLD_MS = 365 * DAY_MS;

export const isKeyOld = (sinceMs: number, nowMs: number) => nowMs - sinceMs >= KEY_OLD_MS;

export interface KnownModule {
  readonly name: string;
  readonly url: string;
  /** Unix milliseconds since when its key is known; undefined without a key, with which it may push events. */
  readonly keySinceMs: number | undefined;
  /** Its events are polled. */
  readonly polled: boolean;
}

/** State of a module at one node. Plain data: it travels. */
export interface NodeModule {
  readonly name: string;
  readonly connections: number;
  /** Calls that wait or run. */
  readonly pending: number;
  /** References `module:/path`. */
  readonly breakersOpen: readonly string[];
}

export function nodeModules(
  known: readonly KnownModule[],
  modules: Pick<ModuleClient, 'counters' | 'origins'>,
): NodeModule[] {
  const { breakersOpen } = modules.counters();
  const origins = modules.origins();
  return known.map(({ name, url }) => {
    const { connections = 0, pending = 0 } = origins.get(new URL(url).origin) ?? {};
    return {
      name,
      connections,
      pending,
      breakersOpen: breakersOpen.filter((key) => key.startsWith(`${name}:`)),
    };
  });
}

/** Times of the newest events by module, in milliseconds: of those among the newest of the log. */
export function lastEvents(eventLog: Pick<EventLog, 'newest' | 'page'>): ReadonlyMap<string, number> {
  const start = Math.max(0, eventLog.newest - EVENTS_LOOKED_AT);
  return new Map(
    eventLog.page(start, EVENTS_LOOKED_AT).map(({ module, acceptedMs }) => [module, acceptedMs]),
  );
}

/** Calls of its tools and through the proxy together. `moduleOfTool`: null for a tool of the gateway itself. */
export function usedByModule(
  used: readonly Used[],
  moduleOfTool: (name: string) => string | null,
): ReadonlyMap<string, UsedName> {
  const ofModules = used.flatMap((each): Used[] => {
    if (each.kind === 'module') return [each];
    const name = each.kind === 'tool' ? moduleOfTool(each.name) : null;
    return name === null ? [] : [{ ...each, kind: 'module', name }];
  });
  return new Map(mergeUsed(ofModules).module.map((row) => [row.name, row]));
}
