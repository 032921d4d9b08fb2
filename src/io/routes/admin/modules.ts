/** Admin JSON of the modules: state, use in the last day, connections, breakers, the last event. */
import {
  array,
  boolean,
  integer,
  named,
  nullable,
  number,
  object,
  text,
  utcText,
} from '../../../domain/schema.ts';
import { toIso } from '../../../domain/time.ts';
import { ALL_NODES } from '../../admin/dashboard.ts';
import { isKeyOld, type KnownModule, lastEvents, usedByModule } from '../../admin/modules.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import type { OperationDeps } from './operations.ts';
import { missingNodes } from './records.ts';

interface ModuleDeps extends Pick<OperationDeps, 'eventLog'> {
  readonly nodes: Pick<AdminNodes, 'history' | 'modules'>;
  readonly catalog: { readonly current: Pick<Catalog, 'tools'> };
  readonly known: readonly KnownModule[];
}

const module = named(
  'ModuleState',
  object({
    name: text({ examples: ['wallet'] }),
    url: text({ examples: ['http://127.0.0.1:9001'] }),
    hasKey: boolean(),
    /** The first start with its present key; null without one. */
    keySinceUtc: nullable(utcText()),
    /** It is time for another one. */
    keyIsOld: boolean(),
    polled: boolean(),
    tools: integer(),
    calls: integer(),
    errors: integer(),
    /** Milliseconds, with the time of the gateway. */
    p50: nullable(number({ examples: [3.1] })),
    p99: nullable(number({ examples: [14] })),
    connections: integer(),
    pending: integer(),
    /** Endpoints whose calls are refused. */
    breakersOpen: array(text({ examples: ['wallet:/wallet/v1/balance/get'] })),
    /** Time of the last event among the newest 1,000 of the log; null where none is of this module. */
    lastEventUtc: nullable(utcText()),
  }),
);

export function createAdminModulesRoute({ nodes, catalog, known, eventLog }: ModuleDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/modules',
    summary: 'Modules with their breakers, connections and last event, and their use in the last day',
    description:
      'In a cluster of all nodes together; `missing` names those that did not answer. Calls are those of tools and through the proxy.',
    result: object({ modules: array(module), missing: missingNodes }),
    async handle({ nowMs }) {
      const [history, states] = await Promise.all([nodes.history('24h', ALL_NODES), nodes.modules()]);
      const { tools } = catalog.current;
      const moduleOfTool = (name: string) => tools.get(name)?.endpoint?.module ?? null;
      const used = usedByModule(
        history.answers.flatMap(({ value }) => value.used),
        moduleOfTool,
      );
      const last = lastEvents(eventLog);
      const own = [...tools.keys()].map(moduleOfTool);
      const rows = known.map(({ name, url, keySinceMs, polled }) => {
        const here = states.answers.flatMap(({ value }) => value.filter((each) => each.name === name));
        const sum = (of: 'connections' | 'pending') => here.reduce((total, each) => total + each[of], 0);
        const { calls = 0, errors = 0, p50 = null, p99 = null } = used.get(name) ?? {};
        const lastMs = last.get(name);
        return {
          ...{ name, url, polled, calls, errors, p50, p99 },
          hasKey: keySinceMs !== undefined,
          keySinceUtc: keySinceMs === undefined ? null : toIso(keySinceMs),
          keyIsOld: keySinceMs !== undefined && isKeyOld(keySinceMs, nowMs),
          tools: own.filter((each) => each === name).length,
          connections: sum('connections'),
          pending: sum('pending'),
          breakersOpen: [...new Set(here.flatMap(({ breakersOpen }) => breakersOpen))],
          lastEventUtc: lastMs === undefined ? null : toIso(lastMs),
        };
      });
      return { modules: rows, missing: [...states.missing] };
    },
  });
}
