/** Routes of the authorization server under /connect. */
import type { OAuthPolicy } from '../connect/policy.ts';
import { CONNECT_PROFILE_PATH, type Resources } from '../connect/resources.ts';
import type { AnyRoute } from '../http/route.ts';
import { resourceMetadataRoute, serverMetadataRoute } from './connect-metadata.ts';

export interface ConnectDeps {
  readonly resources: Resources;
  readonly policy: OAuthPolicy;
}

export function createConnectRoutes(deps: ConnectDeps): AnyRoute[] {
  return [
    resourceMetadataRoute(deps.resources),
    resourceMetadataRoute(deps.resources, CONNECT_PROFILE_PATH),
    serverMetadataRoute(deps.policy),
  ];
}
