/**
 * Features that a node of a cluster does not offer, yet or for the moment. Their routes answer `NotWithCluster`, nothing
 * works for them in the background, and their configuration is accepted.
 */

/** `events`: from modules, pushed or polled. `streams`: of events, to browsers. `webhooks`: REST, panel and deliveries. */
export const FEATURES = ['files', 'events', 'streams', 'webhooks'] as const;
export type Feature = (typeof FEATURES)[number];

export interface OfferedFeatures {
  /** What the pages show. */
  readonly offered: readonly Feature[];
  readonly missing: ReadonlySet<Feature>;
}

const EVENT_FEATURES = ['events', 'streams', 'webhooks'] as const;

interface FeatureFacts {
  readonly cluster: { readonly sharedFiles: boolean } | undefined;
}

/**
 * The only place that decides: routes name their feature, and background work asks here before it starts.
 * `membersReadEvents`: every member of the cluster can apply rows with events; an older program would stop at them.
 */
export function featuresOf({ cluster }: FeatureFacts, membersReadEvents = true): OfferedFeatures {
  if (cluster === undefined) return allBut();
  return allBut(
    ...(cluster.sharedFiles ? [] : ['files' as const]),
    ...(membersReadEvents ? [] : EVENT_FEATURES),
  );
}

function allBut(...missing: readonly Feature[]): OfferedFeatures {
  return { offered: FEATURES.filter((feature) => !missing.includes(feature)), missing: new Set(missing) };
}
