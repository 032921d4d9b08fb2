/** The counters of every part for the internal health page, flattened to one number per name. */
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { Pipeline } from '../io/http/pipeline.ts';
import type { PartCounters } from '../io/routes/internal.ts';
import { journalFileBytes, type MetricSources } from './metrics.ts';

/** Nested counters as `outer_inner`; anything that is no number is left out. */
function flatten(counters: object, prefix = ''): PartCounters {
  const flat: Record<string, number> = {};
  for (const [name, value] of Object.entries(counters)) {
    const key = prefix === '' ? name : `${prefix}_${name}`;
    if (typeof value === 'number') flat[key] = value;
    else if (Array.isArray(value)) flat[key] = value.length;
    else if (typeof value === 'object' && value !== null) Object.assign(flat, flatten(value, key));
  }
  return flat;
}

/** Sessions of browsers and agents, contact sync tokens, and the size of the journal file. */
function gatewayCounters({ actors, configuration }: MetricSources): PartCounters {
  return {
    browserSessions: actors.count('sidHash'),
    mcpSessions: actors.count('sessionHash'),
    contactSyncTokens: actors.count('contactSync'),
    journalFileBytes: journalFileBytes(configuration),
  };
}

/** The use of each bound, and how often it or a share of it was exhausted. */
function boundCounters(bounds: SharedBounds): PartCounters {
  const rows = bounds.report().map(({ name, held, refused }) => [name, { held, refused }] as const);
  return flatten(Object.fromEntries(rows));
}

export function countersOf(sources: MetricSources, pipeline: Pipeline): Record<string, () => PartCounters> {
  return {
    gateway: () => gatewayCounters(sources),
    actors: () => flatten(sources.actors.counters()),
    workers: () => flatten(sources.workers.counters()),
    modules: () => flatten(sources.modules.counters()),
    files: () => flatten(sources.files.counters()),
    drafts: () => flatten(sources.drafts.uploads.counters()),
    bounds: () => boundCounters(sources.bounds),
    limiter: () => flatten(sources.limiter.counters()),
    connections: () => flatten(sources.publicServer.counters()),
    events: () => flatten(sources.events.counters()),
    streams: () => flatten(sources.events.streams.counters()),
    webhooks: () => flatten(sources.webhooks.counters()),
    requests: () => flatten(pipeline.counters()),
  };
}
