/** Keys of the configuration file on hosts that connect with OAuth (docs/connect.md). */
import { array, boolean, oneOf, optional, text } from '../schema.ts';

export const oauthKeys = {
  OAuthClients: optional(
    oneOf(
      ['registered', 'cimd', 'any'],
      'Which hosts may ask for access at /connect: registered applications; also client-id metadata documents; also dynamic registration. Left out: any, in Production cimd.',
    ),
  ),
  OAuthClientHosts: optional(
    array(text({ minLength: 1, maxLength: 253, description: 'Host name.' }), {
      description: 'Hosts whose client-id metadata documents are taken. Left out or empty: every host.',
    }),
  ),
  OAuthRootMetadata: optional(
    boolean({
      description:
        'The issuer is BaseUrl, with its document at /.well-known/oauth-authorization-server. false: the issuer is BaseUrl/connect, and the root has no document.',
    }),
  ),
};
