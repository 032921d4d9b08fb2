/** The figures of every part for metrics and the internal health page, flattened to one number per name. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Limiter } from '../actors/limits/limiter.ts';
import { DATA_FILE } from '../actors/runtime/journal/file.ts';
import type { RunningSystem } from '../actors/runtime/system.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { Pipeline } from '../io/http/pipeline.ts';
import type { Server } from '../io/http/server.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import type { PartCounters } from '../io/observability/metrics.ts';
import type { DraftParts } from '../io/routes/files-v2.ts';
import type { StreamHub } from '../io/sse/hub.ts';
import type { WorkerPool } from '../workers/pool.ts';
import type { FileTransport } from './files.ts';

export interface MetricSources {
  readonly configuration: Configuration;
  readonly actors: RunningSystem;
  readonly workers: WorkerPool;
  readonly modules: ModuleClient;
  readonly limiter: Limiter;
  readonly bounds: SharedBounds;
  readonly files: FileTransport;
  readonly drafts: DraftParts;
  readonly publicServer: Server;
  readonly events: { readonly streams: StreamHub; counters(): PartCounters };
  readonly webhooks: { counters(): PartCounters };
}

/** Nested counters as `outer_inner`; anything that is no number is left out. */
export function flatten(counters: object, prefix = ''): PartCounters {
  const figures: Record<string, number> = {};
  for (const [name, value] of Object.entries(counters)) {
    const key = prefix === '' ? name : `${prefix}_${name}`;
    if (typeof value === 'number') figures[key] = value;
    else if (Array.isArray(value)) figures[key] = value.length;
    else if (typeof value === 'object' && value !== null) Object.assign(figures, flatten(value, key));
  }
  return figures;
}

/** Browsers' and agents' sessions, and the journal's file with the room that was made ahead of need. */
function gatewayFigures({ actors, configuration }: MetricSources): PartCounters {
  const file = join(configuration.dataPath, DATA_FILE);
  return {
    browserSessions: actors.count('sidHash'),
    mcpSessions: actors.count('sessionHash'),
    journalFileBytes: statSync(file, { throwIfNoEntry: false })?.size ?? 0,
  };
}

/** Of each bound what is held now and how often a share of it, or all of it, was used up. */
function boundFigures(bounds: SharedBounds): PartCounters {
  const rows = bounds.report().map(({ name, held, refused }) => [name, { held, refused }] as const);
  return flatten(Object.fromEntries(rows));
}

export function countersOf(parts: MetricSources, pipeline: Pipeline): Record<string, () => PartCounters> {
  return {
    gateway: () => gatewayFigures(parts),
    actors: () => flatten(parts.actors.counters()),
    workers: () => flatten(parts.workers.counters()),
    modules: () => flatten(parts.modules.counters()),
    files: () => flatten(parts.files.counters()),
    drafts: () => flatten(parts.drafts.uploads.counters()),
    bounds: () => boundFigures(parts.bounds),
    limiter: () => flatten(parts.limiter.counters()),
    connections: () => flatten(parts.publicServer.counters()),
    events: () => parts.events.counters(),
    streams: () => flatten(parts.events.streams.counters()),
    webhooks: () => parts.webhooks.counters(),
    requests: () => flatten(pipeline.counters()),
  };
}
