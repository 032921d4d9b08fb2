/**
 * Metadata of protected resources and of the authorization server (RFC 9728, RFC 8414). None is for /mcp or the root: hosts
 * stop sending their header where a protected resource is offered.
 */
import { GatewayError } from '../../domain/errors.ts';
import { array, boolean, object, optional, text } from '../../domain/schema.ts';
import type { Site } from '../../domain/site.ts';
import { type OAuthPolicy, takesDocuments, takesRegistrations } from '../connect/policy.ts';
import { CONNECT_PATH, METADATA_PREFIX, type Resources, resourceMetadata } from '../connect/resources.ts';
import { type AnyRoute, defineRoute, type HeaderList, Reply } from '../http/table/route.ts';
import { PROFILE_PARAMS } from '../mcp/subsets.ts';

/** Seconds that a client may keep the documents. */
const CACHED: HeaderList = [['Cache-Control', 'public, max-age=300']];
const uri = text({ examples: ['https://gate.example/connect/mcp'] });
const names = array(text({ examples: ['tools'] }));
const own = { group: 'connect', auth: 'none', anyOrigin: true } as const;

const resourceDocument = object({
  resource: uri,
  authorization_servers: array(uri),
  scopes_supported: names,
  bearer_methods_supported: names,
  resource_name: text({ examples: ['demo'] }),
});

const serverDocument = object({
  issuer: uri,
  authorization_endpoint: uri,
  token_endpoint: uri,
  revocation_endpoint: uri,
  registration_endpoint: optional(uri),
  scopes_supported: names,
  response_types_supported: names,
  response_modes_supported: names,
  grant_types_supported: names,
  code_challenge_methods_supported: names,
  token_endpoint_auth_methods_supported: names,
  revocation_endpoint_auth_methods_supported: names,
  client_id_metadata_document_supported: boolean(),
  authorization_response_iss_parameter_supported: boolean(),
});

/** `path`: of the resource; it may have parameters. */
export function resourceMetadataRoute(resources: Resources, path: string = CONNECT_PATH): AnyRoute {
  return defineRoute({
    ...own,
    method: 'GET',
    path: `${METADATA_PREFIX}${path}`,
    slashToo: true,
    summary: 'Metadata of the protected resource (RFC 9728)',
    description:
      '`resource` is the address that the client typed: on a loopback bind it has the Host of the request.',
    docs: {
      ...(path.includes('/:profile') ? { params: PROFILE_PARAMS } : {}),
      answers: {
        200: { description: 'The metadata', type: 'application/json', schema: resourceDocument },
      },
    },
    errors: ['NotFound'],
    handle(context) {
      const typed = context.rawPath.slice(METADATA_PREFIX.length);
      const resource = resources.find(typed);
      if (resource === undefined) throw new GatewayError('NotFound');
      return Reply.json(200, resourceMetadata(context, resource, typed), CACHED);
    },
  });
}

/** The document of the issuer. Its former place, below /connect, gives the same one for a release. */
export function serverMetadataRoutes(policy: OAuthPolicy): AnyRoute[] {
  return ['', '/connect'].map((suffix) =>
    defineRoute({
      ...own,
      method: 'GET',
      path: `/.well-known/oauth-authorization-server${suffix}`,
      summary: 'Metadata of the authorization server (RFC 8414)',
      description:
        'The issuer is `BaseUrl`. With `OAuthRootMetadata` false it is `BaseUrl/connect`, and the document is there alone.',
      docs: {
        answers: { 200: { description: 'The metadata', type: 'application/json', schema: serverDocument } },
      },
      errors: ['NotFound'],
      handle({ site }) {
        if (suffix === '' && site.issuer !== site.baseUrl) throw new GatewayError('NotFound');
        return Reply.json(200, serverMetadata(site, policy), CACHED);
      },
    }),
  );
}

function serverMetadata({ issuer, baseUrl }: Site, policy: OAuthPolicy): object {
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
