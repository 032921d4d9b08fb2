/**
 * Features that a node of a cluster does not offer yet. Their routes answer `NotWithCluster`, nothing works for them in
 * the background, and their configuration is accepted.
 */

/** `events`: from modules, pushed or polled. `streams`: of events, to browsers. `webhooks`: REST, panel and deliveries. */
export type Feature = 'files' | 'events' | 'streams' | 'webhooks';

const NOT_WITH_CLUSTER: ReadonlySet<Feature> = new Set(['files', 'events', 'streams', 'webhooks']);
const NONE: ReadonlySet<Feature> = new Set();

/** The only place that decides: routes name their feature, and background work asks here before it starts. */
export function missingFeatures({ cluster }: { readonly cluster: unknown }): ReadonlySet<Feature> {
  return cluster === undefined ? NONE : NOT_WITH_CLUSTER;
}
