/** Connected hosts of the account (OAuth): the list, and the end of one. */
import { array, int64, object } from '../../domain/schema.ts';
import { originOf, requireId } from '../accounts/login-parts.ts';
import { endedHostSchema, endHost, hostSchema, listHosts } from '../connect/hosts.ts';
import { defineRoute } from '../http/table/route.ts';

export const connectedHosts = defineRoute({
  method: 'GET',
  path: '/auth/v1/connected_hosts',
  summary: 'Hosts that were connected with OAuth',
  description: 'The one used last comes first. The name is what the host says of itself.',
  group: 'auth',
  auth: 'session',
  result: array(hostSchema),
  handle: ({ actors, session }) => listHosts(actors, session.userId),
});

export const endConnectedHost = defineRoute({
  method: 'POST',
  path: '/auth/v1/connected_hosts/revoke',
  summary: 'Disconnect a host: its tokens are good for nothing from then on',
  description: 'Its sessions end at once.',
  group: 'auth',
  auth: 'session',
  body: object({ id: int64('Id of the connected host: decimal string') }),
  result: endedHostSchema,
  errors: ['NotFound'],
  handle: (context) =>
    endHost(context.actors, context.session.userId, requireId(context.body.id, 'id'), originOf(context)),
});
