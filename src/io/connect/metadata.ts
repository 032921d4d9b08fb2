/** The metadata document of the authorization server (RFC 8414). */

import type { Site } from '../../domain/site.ts';
import { type OAuthPolicy, takesDocuments, takesRegistrations } from './policy.ts';

export function serverMetadata({ issuer, baseUrl }: Site, policy: OAuthPolicy): object {
  const endpoints = `${baseUrl}/connect`;
  return {
    issuer,
    authorization_endpoint: `${endpoints}/authorize`,
    token_endpoint: `${endpoints}/token`,
    revocation_endpoint: `${endpoints}/revoke`,
    ...(takesRegistrations(policy) ? { registration_endpoint: `${endpoints}/register` } : {}),
    scopes_supported: ['read', 'tools', 'full', 'offline_access'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    client_id_metadata_document_supported: takesDocuments(policy),
    authorization_response_iss_parameter_supported: true,
  };
}
