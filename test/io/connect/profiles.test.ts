/** Profiles at /connect: an address, metadata and an audience of their own. */
import t from 'tap';
import { protectedEndpoint } from '../../../src/io/connect/mcp-endpoint.ts';
import { CONNECT_PROFILE_PATH, createResources, mcpResource } from '../../../src/io/connect/resources.ts';
import { resourceMetadataRoute } from '../../../src/io/routes/connect-metadata.ts';
import { startMcp, TOKENS } from '../../support/mcp.ts';

const PATH = '/connect/p/shop/mcp';
const METADATA = '/.well-known/oauth-protected-resource';
const profiles = { shop: { tools: ['wallet'], title: 'Shop' } };
const resources = createResources([mcpResource({ project: 'demo' })], (name) =>
  mcp.catalog.current.profiles.get(name),
);
const mcp = await startMcp({
  configured: () => ({ tools: {}, resources: {}, profiles }),
  endpoints: [protectedEndpoint(), protectedEndpoint(CONNECT_PROFILE_PATH)],
  routes: [resourceMetadataRoute(resources, CONNECT_PROFILE_PATH)],
});
t.teardown(() => mcp.close());

const post = (path: string, token?: string) =>
  fetch(`${mcp.http.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });

t.test('/connect/p/NAME/mcp: metadata names its own address and the title of the profile', async (t) => {
  const answer = await fetch(`${mcp.http.url}${METADATA}${PATH}`);
  t.match(await answer.json(), { resource: `${mcp.http.url}${PATH}`, resource_name: 'Shop' });
});

t.test(
  '/connect/p/NAME/mcp: the challenge names its own metadata, without and with a foreign token',
  async (t) => {
    for (const token of [undefined, TOKENS.McpVerified, TOKENS.connected]) {
      const answer = await post(PATH, token);
      t.equal(answer.status, 401, String(token));
      t.match(
        answer.headers.get('www-authenticate'),
        `resource_metadata="${mcp.http.url}${METADATA}${PATH}"`,
      );
    }
  },
);

t.test('/connect/p/NAME/mcp/: with a slash at its end the address is the same', async (t) => {
  t.match((await post(`${PATH}/`)).headers.get('www-authenticate'), `${METADATA}${PATH}/"`);
  const answer = await fetch(`${mcp.http.url}${METADATA}${PATH}/`);
  t.match(await answer.json(), { resource: `${mcp.http.url}${PATH}/`, resource_name: 'Shop' });
});

t.test('/connect/p/NAME/mcp: an unknown profile is 404, its metadata too', async (t) => {
  t.equal((await post('/connect/p/nope/mcp')).status, 404);
  for (const method of ['GET', 'DELETE'])
    t.equal((await fetch(`${mcp.http.url}/connect/p/nope/mcp`, { method })).status, 404, method);
  t.equal((await fetch(`${mcp.http.url}${METADATA}/connect/p/nope/mcp`)).status, 404);
});
