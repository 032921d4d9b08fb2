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

const WITHOUT_CLUSTER = allBut();
const WITH_CLUSTER = allBut('files');
const WITH_EARLIER_MEMBERS = allBut(...FEATURES);

/**
 * The only place that decides: routes name their feature, and background work asks here before it starts.
 * `membersReadEvents`: every member of the cluster can apply rows with events; an older program would stop at them.
 */
export function featuresOf(
  { cluster }: { readonly cluster: unknown },
  membersReadEvents = true,
): OfferedFeatures {
  if (cluster === undefined) return WITHOUT_CLUSTER;
  return membersReadEvents ? WITH_CLUSTER : WITH_EARLIER_MEMBERS;
}

function allBut(...missing: readonly Feature[]): OfferedFeatures {
  return { offered: FEATURES.filter((feature) => !missing.includes(feature)), missing: new Set(missing) };
}
