/**
 * Features that a node of a cluster does not offer yet. Their routes answer `NotWithCluster`, nothing works for them in
 * the background, and their configuration is accepted.
 */

/** `events`: from modules, pushed or polled. `streams`: of events, to browsers. `webhooks`: REST, panel and deliveries. */
export const FEATURES = ['files', 'events', 'streams', 'webhooks'] as const;
export type Feature = (typeof FEATURES)[number];

const NOT_WITH_CLUSTER: ReadonlySet<Feature> = new Set(FEATURES);
const NONE: ReadonlySet<Feature> = new Set();

/** The only place that decides: routes name their feature, and background work asks here before it starts. */
export function missingFeatures({ cluster }: { readonly cluster: unknown }): ReadonlySet<Feature> {
  return cluster === undefined ? NONE : NOT_WITH_CLUSTER;
}

/** What the pages show: the features that are not missing. */
export function offeredFeatures(configuration: { readonly cluster: unknown }): readonly Feature[] {
  const missing = missingFeatures(configuration);
  return FEATURES.filter((feature) => !missing.has(feature));
}
