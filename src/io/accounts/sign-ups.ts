/** The daily limit of new accounts of a network (`SignUpsPerNetworkPerDay`). */
import { isLoopback } from '../../domain/limits/networks.ts';
import type { RouteContext } from '../http/table/route.ts';

export interface SignUpDeps {
  /** Called at least once for each account that is created. */
  readonly onSignedUp: (userId: string) => void;
}

/**
 * Runs `create`, which creates an account. Throws `AccessRateLimit` first when the network has used up its day. A failed
 * `create` is not counted. Outside Production loopback is not counted, so that programs of one machine are not limited.
 */
export async function countingSignUps<T extends { readonly userId: string }>(
  { onSignedUp }: SignUpDeps,
  { limiter, client, site }: Pick<RouteContext, 'limiter' | 'client' | 'site'>,
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
