/** The metadata document by which servers know this gateway as an OAuth client (client-id metadata documents). */
import type { Site } from '../../../domain/site.ts';

export const CLIENT_DOCUMENT_PATH = '/connect/client.json';
export const CALLBACK_PATH = '/auth/v1/upstreams/callback';

/** This gateway as a client of others. */
export interface GatewayClient {
  readonly name: string;
  readonly baseUrl: string;
  readonly redirectUri: string;
}

export function gatewayClient({ project, baseUrl }: Pick<Site, 'project' | 'baseUrl'>): GatewayClient {
  return { name: project, baseUrl, redirectUri: `${baseUrl}${CALLBACK_PATH}` };
}

export function clientDocument({ name, baseUrl, redirectUri }: GatewayClient) {
  return {
    client_id: `${baseUrl}${CLIENT_DOCUMENT_PATH}`,
    client_name: name,
    client_uri: baseUrl,
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
}
