/** How many accounts one network may create in a day (`SignUpsPerNetworkPerDay`), wherever accounts are created. */
import { isLoopback } from '../../domain/limits/networks.ts';
import type { RouteContext } from '../http/route.ts';

/**
 * Runs what creates an account. Throws `AccessRateLimit` before it when the network has used its day up; one that was
 * not created is given back; of one that was `onSignedUp` is told. Loopback outside Production is not counted: programs of the same machine, tests for one.
 */
export async function countingSignUps<T extends { readonly userId: string }>(
  { limiter, client, site, onSignedUp }: Pick<RouteContext, 'limiter' | 'client' | 'site' | 'onSignedUp'>,
  create: () => Promise<T>,
): Promise<T> {
  const giveBack = !site.production && isLoopback(client.address) ? undefined : limiter.chargeSignUp();
  try {
    const created = await create();
    onSignedUp(created.userId);
    return created;
  } catch (error) {
    giveBack?.();
    throw error;
  }
}
