/** Admin JSON of the history: what this node, another one, or all of them remember of the last minutes and hours. */
import { ownerUnavailable } from '../../../actors/routed-system.ts';
import {
  array,
  integer,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  text,
  utcText,
} from '../../../domain/schema.ts';
import { toIso } from '../../../domain/time.ts';
import { ALL_NODES } from '../../admin/dashboard.ts';
import { RANGE_NAMES } from '../../admin/history/history.ts';
import { mergeHistory } from '../../admin/history/merge.ts';
import { HISTORY_SERIES } from '../../admin/history/series.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';
import { missingNodes } from './records.ts';

const usedName = named(
  'UsedName',
  object({
    name: text({ examples: ['wallet_get_balance'] }),
    calls: integer({ examples: [4210] }),
    errors: integer(),
    /** Milliseconds. */
    p50: nullable(number({ examples: [3.1] })),
    p99: nullable(number({ examples: [14] })),
  }),
);

const samples = array(nullable(number({ examples: [12.5] })));
const history = named(
  'History',
  object({
    stepSeconds: integer({ examples: [2] }),
    endUtc: utcText('End of the newest step'),
    /** Nodes that the samples are of, without a name where there is no cluster. Before `sinceUtc` a node knows nothing. */
    nodes: array(object({ node: nullable(text({ examples: ['a'] })), sinceUtc: utcText() })),
    missing: missingNodes,
    series: object(
      Object.fromEntries(
        [...HISTORY_SERIES.map(({ name }) => name), 'p50', 'p99'].map((name) => [name, samples]),
      ),
    ),
    tools: array(usedName),
    routes: array(usedName),
  }),
);

export function createAdminHistoryRoute(nodes: Pick<AdminNodes, 'history'>): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/history',
    summary: 'Figures of the last five minutes, hour or day, with the use of tools and routes',
    description:
      'A sample every two seconds for five minutes, one a minute beyond. Null is a gap: the process did not run, or nothing finished. The history is in memory, so a start begins anew: `sinceUtc`.',
    query: object({
      range: oneOf(RANGE_NAMES),
      node: optional(
        text({
          maxLength: 32,
          examples: ['a'],
          description: `Name of a node of the cluster, ${ALL_NODES} for all; the one that answers unless given`,
        }),
      ),
    }),
    result: history,
    errors: ['NotFound'],
    async handle({ query: { range, node } }) {
      const { answers, missing } = await nodes.history(range, node);
      if (answers.length === 0) throw ownerUnavailable();
      const { used, ...merged } = mergeHistory(
        range,
        answers.map(({ value }) => value),
      );
      return {
        ...merged,
        nodes: answers.map(({ name, value }) => ({ node: name, sinceUtc: toIso(value.sinceMs) })),
        missing: [...missing],
        tools: used.tool,
        routes: used.route,
      };
    },
  });
}
