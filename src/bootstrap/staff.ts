/** Loads the roles from the journal, and creates a set-up link while no account can open the admin panel. */
import { randomBytes } from 'node:crypto';
import { STAFF_ID, staff as staffKind } from '../actors/admin/staff.ts';
import type { ActorSystem } from '../actors/runtime/actor.ts';
import type { Ownership } from '../actors/runtime/ownership.ts';
import type { RunningSystem } from '../actors/runtime/system.ts';
import type { Site } from '../domain/site.ts';
import { LiveStaff, SETUP_TOKEN_BYTES, SetupLink, SetupLinks } from '../io/admin/staff.ts';
import { untilServed } from './actors.ts';

export interface OpenedStaff {
  readonly staff: LiveStaff;
  readonly setupLinks: SetupLinks;
  /** Printed once and never logged. The token follows `#`, a part that browsers do not send. */
  readonly setupAddress: string | undefined;
}

export async function openStaff(
  actors: ActorSystem,
  local: RunningSystem,
  { adminPublicKeys, baseUrl }: Site,
  ownership: Ownership,
): Promise<OpenedStaff> {
  const staff = new LiveStaff(actors, adminPublicKeys, local);
  local.onApplied(staffKind, () => staff.reload());
  staff.reload();
  const setupLinks = new SetupLinks();
  // The token is in memory: one node of a cluster has the link.
  const isNeeded = ownership.owns(staffKind.kind, STAFF_ID) && !(await untilServed(() => staff.hasAdmin()));
  const setupAddress = isNeeded ? createSetupLink(setupLinks, baseUrl, false) : undefined;
  return { staff, setupLinks, setupAddress };
}

/** Replaces the link before. Returns the address of the new one. */
export function createSetupLink(setupLinks: SetupLinks, baseUrl: string, recovers: boolean): string {
  const token = randomBytes(SETUP_TOKEN_BYTES).toString('base64url');
  setupLinks.current = new SetupLink(token, Date.now(), recovers);
  return `${baseUrl}/ProxyAdmin/${recovers ? 'Recovery' : 'Setup'}#${token}`;
}
