/** What the command `profile` may ask of a gateway. */
export const PROFILE_KINDS = ['cpu', 'heap'] as const;
export type ProfileKind = (typeof PROFILE_KINDS)[number];

/** A longer profile takes too long to write. */
export const PROFILE_SECONDS_MAX = 60;
