/**
 * Hosts that connect by address, at any node: consent, code, refresh, call and revocation are each at another one, and the
 * official clients run against all of them in turn.
 */
import t from 'tap';
import { type Answer, expectOk, type Person, request, signUp } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { disconnect, endAccess, hostsOf } from '../../../kit/consent.ts';
import { asked, nodesTest, resultOf, type ThreeNodes } from '../../support/cluster/three-nodes.ts';
import {
  askRequest,
  authorizeQuery,
  challengeOfView,
  consent,
  exchange,
  type HostClient,
  type HostTokens,
  refreshTokens,
  registerHost,
  sendMcp,
  tokensOf,
} from '../../support/hosts.ts';
import { liveAsHost, VERSIONS } from '../../support/mcp-clients/hosts.ts';

const CALL = { method: 'tools/call', params: { name: 'wallet_get_balance', arguments: {} } };

t.setTimeout(240_000);

/** The host registers, the person agrees and the code is redeemed, each at another node. */
async function connected(
  { nodes: [a, b, c] }: Pick<ThreeNodes, 'nodes'>,
  person: Person,
): Promise<{ host: HostClient; code: string; tokens: HostTokens }> {
  const host = await registerHost(a.url);
  const code = await consent(b.url, person.cookie, authorizeQuery(host));
  return { host, code, tokens: tokensOf(await exchange(c.url, host, code)) };
}

async function admits(nodes: readonly NodeProcess[], token: string): Promise<number[]> {
  const answers = await Promise.all(nodes.map(({ url }) => sendMcp(url, token, CALL)));
  return answers.map(({ status }) => status);
}

const GOOD = [200, 200, 200];
const DEAD = [401, 401, 401];

nodesTest(
  'a grant lives at every node: code, refresh, former refresh tokens, six refreshes at once',
  async (t, three) => {
    const { nodes } = three;
    const [a, b, c] = nodes;
    const person = await signUp(a.url);
    const { host, tokens } = await connected(three, person);
    t.strictSame(await admits(nodes, tokens.access), GOOD, 'the token of c');
    for (const { url } of nodes) t.match(await hostsOf(url, person), [{ name: 'Notebook', sessions: 1 }]);

    const second = tokensOf(await refreshTokens(a.url, host, tokens.refresh));
    t.not(second.refresh, tokens.refresh);
    t.strictSame(await admits(nodes, second.access), GOOD, 'the token of a refresh at a');
    const again = tokensOf(await refreshTokens(b.url, host, tokens.refresh));
    t.strictSame(await admits(nodes, again.access), GOOD, 'the former refresh token, at b');
    t.equal(again.refresh, second.refresh, 'has the same successor there');
    const third = tokensOf(await refreshTokens(c.url, host, again.refresh));
    const late = tokensOf(await refreshTokens(b.url, host, tokens.refresh));
    t.equal(late.refresh, third.refresh, 'the first one gives the newest of the chain');

    const answers = await Promise.all(
      [a, b, c, a, b, c].map(({ url }) => refreshTokens(url, host, third.refresh)),
    );
    const at = answers.map(tokensOf);
    t.equal(new Set(at.map(({ refresh }) => refresh)).size, 1, 'six at once at three nodes: one successor');
    const live = await Promise.all(at.map(({ access }) => admits(nodes, access)));
    t.strictSame(live, Array(6).fill(GOOD));
    for (const { url } of nodes) t.match(await hostsOf(url, person), [{ sessions: 8 }]);
  },
);

/** A token of the grant that is no longer one of its formers: nine replacements within a minute. */
nodesTest('a refresh token that is used again too late ends the grant at every node', async (t, three) => {
  const { nodes } = three;
  const person = await signUp(nodes[0].url);
  const { host, tokens } = await connected(three, person);
  let last = tokens;
  for (let use = 0; use < 9; use += 1) {
    const at = nodes[use % nodes.length] ?? nodes[0];
    last = tokensOf(await refreshTokens(at.url, host, last.refresh));
  }
  t.strictSame(await admits(nodes, last.access), GOOD);
  const { json } = await refreshTokens(nodes[2].url, host, tokens.refresh);
  t.match(json, { error: 'invalid_grant' });
  t.strictSame(await admits(nodes, last.access), DEAD, 'the grant is over at every node');
  for (const { url } of nodes) t.strictSame(await hostsOf(url, person), []);
});

nodesTest('a revocation at one node holds at the others in the next request', async (t, three) => {
  const { nodes } = three;
  const [a, b, c] = nodes;
  const person = await signUp(b.url);
  for (const at of nodes) {
    const { host, tokens } = await connected(three, person);
    await endAccess(at.url, host.clientId, tokens.access);
    t.strictSame(await admits(nodes, tokens.access), DEAD, `access ended at ${at.name}`);
    const { access, refresh } = tokensOf(await refreshTokens(at.url, host, tokens.refresh));
    await disconnect(at.url, person);
    t.strictSame(await admits(nodes, access), DEAD, `disconnected at ${at.name}`);
    for (const { url } of [c, b, a])
      t.match((await refreshTokens(url, host, refresh)).json, { error: 'invalid_grant' });
  }
});

nodesTest('a code and a consent count once over all nodes', async (t, three) => {
  const { nodes } = three;
  const [a, b, c] = nodes;
  const person = await signUp(c.url);
  const host = await registerHost(b.url);
  const code = await consent(a.url, person.cookie, authorizeQuery(host));
  const answers = await Promise.all(nodes.map(({ url }) => exchange(url, host, code)));
  const [good, ...others] = answers.sort((one, other) => one.status - other.status);
  t.strictSame(
    answers.map(({ status }) => status),
    [200, 400, 400],
    'three nodes at once: one redeems it',
  );
  for (const other of others) t.match(other.json, { error: 'invalid_grant' });
  t.strictSame(
    await admits(nodes, tokensOf(good as Answer).access),
    DEAD,
    'a code used twice ends what it gave',
  );

  const query = authorizeQuery(host);
  const shown = expectOk('request', await askRequest(b.url, person.cookie, query));
  const decide = ({ url }: NodeProcess) =>
    request(`${url}/connect/decide`, {
      headers: { cookie: person.cookie, origin: url },
      body: { request: query, ...challengeOfView(shown), allow: true },
    });
  const decided = await Promise.all([decide(c), decide(a)]);
  t.strictSame(decided.map(({ status }) => status).sort(), [200, 401], 'a consent counts once');
});

nodesTest('a block and a closed application end the tokens of hosts everywhere', async (t, three) => {
  const { nodes } = three;
  const [a, b, c] = nodes;
  const admin = await three.adminOf(c);
  const person = await signUp(a.url);
  const first = await connected(three, person);
  const { userId } = person;
  await resultOf(b, admin, '/ProxyAdmin/api/users/block', { userId, blocked: true });
  t.strictSame(await admits(nodes, first.tokens.access), DEAD, 'the account is blocked');

  const other = await signUp(b.url);
  const { tokens } = await connected(three, other);
  const row = { appId: '1', disabled: true };
  await resultOf(a, admin, '/ProxyAdmin/api/apps/update', row);
  t.strictSame(await admits(nodes, tokens.access), DEAD, 'unregistered hosts are switched off');
  const refused = await asked(c, other.cookie, `/connect/request?${authorizeQuery(first.host)}`);
  t.notMatch(refused.json, { result: { step: 'consent' } }, 'and no consent is asked for at another node');
  await resultOf(b, admin, '/ProxyAdmin/api/apps/update', { ...row, disabled: false });
  t.strictSame(await admits(nodes, (await connected(three, other)).tokens.access), GOOD, 'and on again');
});

for (const [name, clientOf] of Object.entries(VERSIONS))
  nodesTest(`${name}: from the address to a new consent, each request at the next node`, async (t, three) => {
    const { baseUrl: url, nodes } = three;
    const person = await signUp(nodes[0].url);
    await liveAsHost(t, clientOf, { url, address: new URL(`${url}/connect/mcp`), person });
  });
