/**
 * Features that a node of a cluster does not offer for the moment. Their routes answer the error of the feature, nothing
 * works for them in the background, and their configuration is accepted.
 */
import type { ErrorName } from './errors.ts';

/** `events`: from modules, pushed or polled. `streams`: of events, to browsers. `webhooks`: REST, panel and deliveries. */
export const FEATURES = ['files', 'events', 'streams', 'webhooks'] as const;
export type Feature = (typeof FEATURES)[number];

/** The error that routes answer whose feature is missing. */
export const MISSING_FEATURE: Readonly<Record<Feature, ErrorName>> = {
  files: 'FolderNotShared',
  events: 'NotWithCluster',
  streams: 'NotWithCluster',
  webhooks: 'NotWithCluster',
};

export interface OfferedFeatures {
  /** Features that the pages show. */
  readonly offered: readonly Feature[];
  readonly missing: ReadonlySet<Feature>;
}

export interface FeatureFacts {
  /** Every member of the cluster can apply rows with events; an older program would stop at them. */
  readonly membersReadEvents: boolean;
  /** The folder of files is that of the other nodes. */
  readonly sharesFiles: boolean;
}

/** The same facts give the same object: pages keep what they make of it. */
const OFFERS: OfferedFeatures[] = [];

/**
 * The only place that decides: routes name their feature, and background work asks here before it starts. Without facts of
 * a cluster all are offered.
 */
export function featuresOf(facts: Partial<FeatureFacts> = {}): OfferedFeatures {
  const { membersReadEvents = true, sharesFiles = true } = facts;
  const index = (membersReadEvents ? 2 : 0) + (sharesFiles ? 1 : 0);
  const known = OFFERS[index];
  if (known !== undefined) return known;
  const isMissing = (feature: Feature) => !(feature === 'files' ? sharesFiles : membersReadEvents);
  const offer = {
    offered: FEATURES.filter((feature) => !isMissing(feature)),
    missing: new Set(FEATURES.filter(isMissing)),
  };
  OFFERS[index] = offer;
  return offer;
}
