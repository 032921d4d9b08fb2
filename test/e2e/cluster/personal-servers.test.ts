/** Credentials of a person for another MCP server, at three nodes: connected at one, in force at all, refreshed once. */
import t from 'tap';
import { configureServers, nodesTest } from '../../support/cluster/three-nodes.ts';
import { startOAuthUpstream } from '../../support/upstreams/oauth.ts';
import { ask, beginLogin, comeBack, newPerson, readMemo } from '../../support/upstreams/people.ts';

t.setTimeout(240_000);

// covers R122
nodesTest('credentials of a person are in force at every node, and refreshed once', async (t, three) => {
  const [a, b, c] = three.nodes;
  const admin = await three.adminOf(a);
  const upstream = await startOAuthUpstream([]);
  t.teardown(async () => {
    await configureServers(three, await three.adminOf(a), {});
    await upstream.close();
  });
  const server = { url: upstream.url, auth: 'user', authNetworks: ['127.0.0.1'] };
  await configureServers(three, admin, { notes: server });
  const person = await newPerson(a.url);
  const back = upstream.allow(await beginLogin(a.url, person, 'notes'), 'nora');
  t.equal(
    await comeBack(b.url, person, back),
    '/#servers/notes/connected',
    'the browser comes back at another node',
  );
  const everywhere = (times: number) =>
    Promise.all(
      Array.from({ length: times }).flatMap(() => three.nodes.map(({ url }) => readMemo(url, person))),
    );
  t.same(new Set((await everywhere(1)).map((text) => /"text":"(\w+)"/.exec(text)?.[1])), new Set(['nora']));
  const refreshes = () =>
    upstream.askedTokens.filter((asked) => asked.get('grant_type') === 'refresh_token').length;
  for (let round = 1; round <= 3; round += 1) {
    upstream.expireTokens();
    const texts = await everywhere(4);
    t.same(new Set(texts.map((text) => /"text":"(\w+)"/.exec(text)?.[1])), new Set(['nora']));
    t.equal(refreshes(), round, 'twelve calls at three nodes are one refresh');
  }
  t.equal((await ask(c.url, person, '/disconnect', { server: 'notes' })).status, 200);
  const refused = await everywhere(1);
  t.ok(
    refused.every((text) => /connect notes at/.test(text)),
    'once it is answered, no node has the token',
  );
});
