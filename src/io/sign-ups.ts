/** How many accounts one network may create in a day (`SignUpsPerNetworkPerDay`), wherever accounts are created. */
import { isLoopback } from '../domain/networks.ts';
import type { RouteContext } from './http/route.ts';

/**
 * Runs what creates an account. Throws `AccessRateLimit` before it when the network has used its day up; one that was
 * not created is given back. Loopback outside Production is not counted: programs of the same machine, tests for one.
 */
export async function countingSignUps<T>(
  { limiter, client, site }: Pick<RouteContext, 'limiter' | 'client' | 'site'>,
  create: () => Promise<T>,
): Promise<T> {
  if (!site.production && isLoopback(client.address)) return create();
  const giveBack = limiter.chargeSignUp();
  try {
    return await create();
  } catch (error) {
    giveBack();
    throw error;
  }
}
