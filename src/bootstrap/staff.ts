/** Loads the roles from the journal, and creates a set-up link while no account can open the admin panel. */
import { randomBytes } from 'node:crypto';
import type { ActorSystem } from '../actors/runtime/actor.ts';
import type { Site } from '../domain/site.ts';
import { LiveStaff, SETUP_TOKEN_BYTES, SetupLink } from '../io/admin/staff.ts';

export interface OpenedStaff {
  readonly staff: LiveStaff;
  readonly setupLink: SetupLink | undefined;
  /** Printed once and never logged. The token follows `#`, a part that browsers do not send. */
  readonly setupAddress: string | undefined;
}

export async function openStaff(
  actors: ActorSystem,
  { adminPublicKeys, baseUrl }: Site,
): Promise<OpenedStaff> {
  const staff = new LiveStaff(actors, adminPublicKeys);
  await staff.restore();
  if (await staff.hasAdmin()) return { staff, setupLink: undefined, setupAddress: undefined };
  const token = randomBytes(SETUP_TOKEN_BYTES).toString('base64url');
  return {
    staff,
    setupLink: new SetupLink(token, Date.now()),
    setupAddress: `${baseUrl}/ProxyAdmin/Setup#${token}`,
  };
}
