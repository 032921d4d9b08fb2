/** Routes of the authorization server under /connect. */
import type { OAuthPolicy } from '../connect/policy.ts';
import type { Resources } from '../connect/resources.ts';
import type { AnyRoute } from '../http/route.ts';
import { resourceMetadataRoute, serverMetadataRoute } from './connect-metadata.ts';

export interface ConnectDeps {
  readonly resources: Resources;
  readonly policy: OAuthPolicy;
}

export function createConnectRoutes(deps: ConnectDeps): AnyRoute[] {
  return [resourceMetadataRoute(deps.resources), serverMetadataRoute(deps.policy)];
}
