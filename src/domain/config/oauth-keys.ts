/** Keys of the configuration file on hosts that connect with OAuth (docs/connect.md). */
import { array, boolean, oneOf, optional, text } from '../schema.ts';

export const oauthKeys = {
  OAuthClients: optional(
    oneOf(
      ['registered', 'cimd', 'any'],
      'Which hosts may ask for access at /connect: registered applications; also client-id metadata documents; also dynamic registration.',
    ),
  ),
  OAuthClientHosts: optional(
    array(text({ minLength: 1, maxLength: 253, description: 'Host name.' }), {
      description:
        'Hosts whose client-id metadata documents are taken; left out or empty: every host. In Production a dynamic registration may redirect to these hosts, to loopback and to OAuthPrivateRedirects alone.',
    }),
  ),
  OAuthDocuments: optional(
    boolean({
      description:
        'Client-id metadata documents are offered and taken. Hosts that use them need a gateway that reaches the Internet. Left out: true in Production and with OAuthClients cimd, else false.',
    }),
  ),
  OAuthDocumentAllow: optional(
    array(text({ maxLength: 64 }), {
      description:
        'Addresses from which documents are fetched although they are not public. Left out: none; loopback where the listener is bound to loopback and Production is false.',
    }),
  ),
  OAuthPrivateRedirects: optional(
    array(text({ maxLength: 256 }), {
      description:
        'Private redirect URIs of programs that registrations and documents may have: a URI, or a prefix with its authority that ends in /. It replaces the default; reverse domain names (com.example.app:) are taken as well.',
    }),
  ),
  OAuthRootMetadata: optional(
    boolean({
      description:
        'The issuer is BaseUrl, with its document at /.well-known/oauth-authorization-server. false: the issuer is BaseUrl/connect, and the root has no document.',
    }),
  ),
};
