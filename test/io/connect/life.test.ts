import t, { type Test } from 'tap';
import type { Answer } from '../../../kit/agent.ts';
import { DAY_MS, SECOND_MS } from '../../../src/domain/time.ts';
import type { Account } from '../../support/account.ts';
import { cookie } from '../../support/account.ts';
import { type ConnectFixture, startConnectOf as start, startConnected } from '../../support/connect.ts';
import {
  authorizeQuery,
  connectHost,
  consent,
  exchange,
  type HostTokens,
  listTools,
  refreshTokens,
  registerHost,
  sendForm,
  tokensOf,
} from '../../support/hosts.ts';

const LIST = { method: 'tools/list' };

function refusedAs(t: Test, answer: Answer, error: string, status = 400): void {
  t.equal(answer.status, status, answer.text);
  t.equal(String(answer.json['error']), error, answer.text);
}

interface HostItem {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly scopes: readonly string[];
  readonly sessions: number;
}

async function hostsOf({ get }: ConnectFixture, { sid }: Account): Promise<readonly HostItem[]> {
  return (await get('/auth/v1/connected_hosts', cookie(sid))).result as readonly HostItem[];
}

async function eventsOf({ loginLog, owner }: ConnectFixture): Promise<readonly string[]> {
  return ((await loginLog(owner.sid)) as readonly { event: string }[]).map(({ event }) => event);
}

// covers R44
t.test(
  'scopes: read lists what McpBasic reads, tools what applications may do, full everything',
  async (t) => {
    const fixture = await start(t);
    const of = async (scope: string) => {
      const { tokens } = await connectHost(fixture.url, fixture.cookieOf(fixture.owner), { scope });
      return listTools(fixture.url, tokens.access);
    };
    const read = await of('read');
    t.ok(read.includes('wallet_get_balance'), 'the consent is the proof');
    t.notOk(read.includes('payorder_create'));
    const tools = await of('tools');
    t.ok(tools.includes('payorder_create'), 'a consent counts as a proof');
    t.ok((await of('full')).length > read.length);
  },
);

// covers R44 S86
t.test('audience: a token of /connect/mcp opens nothing elsewhere, and others nothing there', async (t) => {
  const fixture = await startConnected(t);
  const { tokens } = fixture;
  const headers = { authorization: `Bearer ${tokens.access}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...LIST });
  const elsewhere = await fetch(`${fixture.url}/mcp`, { method: 'POST', headers, body });
  t.match(await elsewhere.json(), { error: { code: -32001 } });
  const profile = await fetch(`${fixture.url}/connect/p/one/mcp`, { method: 'POST', headers, body });
  t.equal(profile.status, 401);
});

// covers S86
t.test('audience: a token of a profile lists its tools and opens its address alone', async (t) => {
  const fixture = await start(t);
  const resource = `${fixture.url}/connect/p/one/mcp`;
  const { tokens } = await connectHost(fixture.url, fixture.cookieOf(fixture.owner), {
    resource,
    scope: 'full',
  });
  const headers = { authorization: `Bearer ${tokens.access}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...LIST });
  const own = await fetch(resource, { method: 'POST', headers, body });
  t.match(await own.json(), { result: { tools: [{ name: 'user_keys' }] } });
  t.equal(await fixture.statusWith(tokens.access), 401);
});

// covers R42 S83
t.test('code: good once for 60 s; used twice it ends what it gave', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  const code = await consent(fixture.url, fixture.cookieOf(fixture.owner), authorizeQuery(host));
  const tokens = tokensOf(await exchange(fixture.url, host, code));
  t.equal(await fixture.statusWith(tokens.access), 200);
  refusedAs(t, await exchange(fixture.url, host, code), 'invalid_grant');
  t.equal(await fixture.statusWith(tokens.access), 401);
  refusedAs(t, await refreshTokens(fixture.url, host, tokens.refresh), 'invalid_grant');
  refusedAs(t, await exchange(fixture.url, host, code), 'invalid_grant');
  t.ok((await eventsOf(fixture)).includes('token_reused'), 'the owner reads it');

  const late = await consent(fixture.url, fixture.cookieOf(fixture.owner), authorizeQuery(host));
  fixture.actors.clock.nowMs += 60 * SECOND_MS;
  refusedAs(t, await exchange(fixture.url, host, late), 'invalid_grant');
});

// covers S83
t.test('code: bound to client, redirect URI, PKCE verifier and resource', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  const other = await registerHost(fixture.url);
  const code = await consent(fixture.url, fixture.cookieOf(fixture.owner), authorizeQuery(host));
  const send = (changes: Record<string, string>) => exchange(fixture.url, host, code, changes);
  refusedAs(t, await send({ client_id: other.clientId }), 'invalid_grant');
  refusedAs(t, await send({ redirect_uri: 'http://127.0.0.1:33418/other' }), 'invalid_grant');
  refusedAs(t, await send({ code_verifier: 'a'.repeat(43) }), 'invalid_grant');
  refusedAs(t, await send({ code_verifier: '' }), 'invalid_request');
  refusedAs(t, await send({ resource: `${fixture.url}/mcp` }), 'invalid_target');
  refusedAs(t, await send({ resource: 'https://other.example/connect/mcp' }), 'invalid_target');
  refusedAs(t, await send({ code: `${code}A` }), 'invalid_grant');
  refusedAs(t, await send({ client_id: 'unknown' }), 'invalid_client', 401);
  refusedAs(t, await send({ client_secret: 'any' }), 'invalid_client', 401);
  refusedAs(t, await send({ grant_type: 'password' }), 'unsupported_grant_type');
  t.equal((await send({ resource: `${fixture.url}/connect/mcp` })).status, 200, 'none of them spent it');
});

t.test('refresh: idle for 30 days, and 180 days after the consent, the grant is over', async (t) => {
  const fixture = await startConnected(t);
  const { tokens } = fixture;
  const idle = await connectHost(fixture.url, fixture.cookieOf(fixture.admin));
  let { refresh } = tokens;
  for (let day = 0; day < 175; day += 29) {
    refresh = tokensOf(await fixture.refresh(refresh)).refresh;
    fixture.actors.clock.nowMs += 29 * DAY_MS;
  }
  refusedAs(t, await refreshTokens(fixture.url, idle.host, idle.tokens.refresh), 'invalid_grant');
  refusedAs(t, await fixture.refresh(refresh), 'invalid_grant');
});

t.test('refresh: bound to client and resource, never wider than the grant', async (t) => {
  const fixture = await startConnected(t);
  const { tokens } = fixture;
  const other = await registerHost(fixture.url);
  const send = (changes: Record<string, string>) => fixture.refresh(tokens.refresh, changes);
  refusedAs(t, await send({ client_id: other.clientId }), 'invalid_grant');
  refusedAs(t, await send({ resource: `${fixture.url}/mcp` }), 'invalid_target');
  refusedAs(t, await send({ scope: 'full' }), 'invalid_scope');
  refusedAs(t, await send({ refresh_token: 'unknown' }), 'invalid_grant');
  const narrow = await send({ scope: 'read' });
  t.equal(String(narrow.json['scope']), 'read');
  t.notOk((await listTools(fixture.url, tokensOf(narrow).access)).includes('payorder_create'));
});

t.test('access token: expires after OAuthAccessSeconds', async (t) => {
  const fixture = await start(t, { settings: { OAuthAccessSeconds: 600 } });
  const { tokens } = await connectHost(fixture.url, fixture.cookieOf(fixture.owner));
  fixture.actors.clock.nowMs += 599 * SECOND_MS;
  t.equal(await fixture.statusWith(tokens.access), 200);
  fixture.actors.clock.nowMs += SECOND_MS;
  t.equal(await fixture.statusWith(tokens.access), 401);
});

t.test(
  'revoke: a refresh token ends the grant, an access token its session, another client nothing',
  async (t) => {
    const fixture = await startConnected(t);
    const { host, tokens } = fixture;
    const other = await registerHost(fixture.url);
    const revoke = (token: string, client = host) =>
      sendForm(`${fixture.url}/connect/revoke`, { token, client_id: client.clientId });
    for (const token of [tokens.refresh, tokens.access, 'unknown'])
      t.equal((await revoke(token, other)).status, 200, 'as RFC 7009 says');
    t.equal(await fixture.statusWith(tokens.access), 200);
    t.equal((await revoke(tokens.access)).status, 200);
    t.equal(await fixture.statusWith(tokens.access), 401);
    const next = tokensOf(await fixture.refresh(tokens.refresh));
    t.equal((await revoke(next.refresh)).status, 200);
    t.equal(await fixture.statusWith(next.access), 401);
    t.ok((await eventsOf(fixture)).includes('host_revoked'));
  },
);

// covers R42 S96
t.test('owner: sees connected hosts and ends one; another account neither', async (t) => {
  const fixture = await startConnected(t);
  const { tokens } = fixture;
  const [item] = await hostsOf(fixture, fixture.owner);
  t.match(item, { name: 'Notebook', host: '127.0.0.1:33418', scopes: ['tools'], sessions: 1 });
  t.strictSame(await hostsOf(fixture, fixture.admin), []);
  const end = (account: Account) =>
    fixture.post('/auth/v1/connected_hosts/revoke', { id: item?.id }, cookie(account.sid));
  t.equal((await end(fixture.admin)).status, 404);
  t.match((await end(fixture.owner)).result, { id: item?.id, sessionsClosed: 1 });
  t.equal(await fixture.statusWith(tokens.access), 401);
  refusedAs(t, await fixture.refresh(tokens.refresh), 'invalid_grant');
  t.ok((await eventsOf(fixture)).includes('host_connected'));
});

t.test('admin: lists and ends the connected hosts of an account', async (t) => {
  const fixture = await startConnected(t);
  const { tokens } = fixture;
  const { userId } = fixture.owner;
  const { result } = await fixture.ask(`connected_hosts?userId=${userId}`);
  const [item] = result as readonly HostItem[];
  t.match(item, { name: 'Notebook' });
  t.match(await fixture.change('connected_hosts/revoke', { userId, id: item?.id }), { status: 200 });
  t.equal(await fixture.statusWith(tokens.access), 401);
});

// covers S96
t.test('ends: a grant ends with a block, its key, its application and close_sessions', async (t) => {
  const ends: Readonly<Record<string, (fixture: ConnectFixture) => Promise<unknown>>> = {
    block: ({ change, owner }) => change('users/block', { userId: owner.userId, blocked: true }),
    'unblock after it': async ({ change, owner }) => {
      await change('users/block', { userId: owner.userId, blocked: true });
      return change('users/block', { userId: owner.userId, blocked: false });
    },
    key: ({ change, owner }) => change('user_keys/remove', { userId: owner.userId, keyId: owner.keyId }),
    'the row of unregistered hosts': ({ change }) => change('apps/update', { appId: '1', disabled: true }),
    'access of the application': ({ post, owner }) =>
      post('/auth/v1/app/revoke_access', { appId: '1' }, cookie(owner.sid)),
    'all sessions': ({ post, owner }) => post('/auth/v1/close_sessions', { others: true }, cookie(owner.sid)),
  };
  for (const [name, end] of Object.entries(ends)) {
    const fixture = await startConnected(t);
    const { tokens } = fixture;
    t.match(await end(fixture), { status: 200 }, name);
    await fixture.actors.settle();
    t.equal(await fixture.statusWith(tokens.access), 401, name);
    const answer = await fixture.refresh(tokens.refresh);
    t.not(answer.status, 200, name);
  }
});

t.test('ends: a code that was not exchanged yet ends with them too', async (t) => {
  const ends: Readonly<Record<string, (fixture: ConnectFixture) => Promise<unknown>>> = {
    'unblock after a block': async ({ change, owner }) => {
      await change('users/block', { userId: owner.userId, blocked: true });
      return change('users/block', { userId: owner.userId, blocked: false });
    },
    'access of the application': ({ post, owner }) =>
      post('/auth/v1/app/revoke_access', { appId: '1' }, cookie(owner.sid)),
    'all sessions': ({ post, owner }) => post('/auth/v1/close_sessions', {}, cookie(owner.sid)),
    logout: ({ post, owner }) => post('/auth/v1/logout', {}, cookie(owner.sid)),
  };
  for (const [name, end] of Object.entries(ends)) {
    const fixture = await startConnected(t);
    const host = await registerHost(fixture.url);
    const code = await consent(fixture.url, fixture.cookieOf(fixture.owner), authorizeQuery(host));
    t.match(await end(fixture), { status: 200 }, name);
    await fixture.actors.settle();
    refusedAs(t, await exchange(fixture.url, host, code), 'invalid_grant');
  }
});

t.test('grants: the one used longest ago is removed for the 51st', async (t) => {
  const fixture = await startConnected(t);
  const { tokens } = fixture;
  const connectMore = async (count: number): Promise<HostTokens> => {
    let last = tokens;
    for (let turn = 0; turn < count; turn += 1) {
      fixture.actors.clock.nowMs += 6 * SECOND_MS;
      ({ tokens: last } = await connectHost(fixture.url, fixture.cookieOf(fixture.owner)));
    }
    return last;
  };
  const second = await connectMore(1);
  await connectMore(48);
  fixture.actors.clock.nowMs += 61 * SECOND_MS;
  t.equal(await fixture.statusWith(tokens.access), 200, 'used now, without a refresh');
  await fixture.actors.settle();
  const last = await connectMore(1);
  t.equal((await hostsOf(fixture, fixture.owner)).length, 50);
  t.equal(await fixture.statusWith(second.access), 401);
  t.equal(await fixture.statusWith(tokens.access), 200);
  t.equal(await fixture.statusWith(last.access), 200);
});

t.test('token: a client that authenticates with the field learns so with a challenge', async (t) => {
  const fixture = await startConnected(t);
  const { host, tokens } = fixture;
  const body = { grant_type: 'refresh_token', client_id: host.clientId, refresh_token: tokens.refresh };
  const answer = await fetch(`${fixture.url}/connect/token`, {
    method: 'POST',
    headers: { authorization: 'Basic eDp5' },
    body: new URLSearchParams(body),
  });
  t.equal(answer.status, 401);
  t.match(answer.headers.get('www-authenticate'), /^Basic /);
  t.match(await answer.json(), { error: 'invalid_client' });
  const without = await fixture.refresh(tokens.refresh, { client_secret: 'any' });
  t.equal(without.headers.get('www-authenticate'), null);
  t.equal((await fixture.refresh(tokens.refresh)).status, 200, 'neither spent the token');
});

t.test('restart: grants, codes and rotation live in the journal', async (t) => {
  const fixture = await startConnected(t);
  const { host, tokens } = fixture;
  const code = await consent(fixture.url, fixture.cookieOf(fixture.owner), authorizeQuery(host));
  await fixture.actors.restart();
  t.equal(await fixture.statusWith(tokens.access), 200);
  const second = tokensOf(await fixture.refresh(tokens.refresh));
  t.equal((await exchange(fixture.url, host, code)).status, 200);
  await fixture.actors.restart();
  refusedAs(t, await exchange(fixture.url, host, code), 'invalid_grant');
  t.equal(await fixture.statusWith(second.access), 200);
});

t.test('limits: a host behind a software key shares the scope p of the key', async (t) => {
  const fixture = await start(t, { settings: { PubKeyApiRPSLimit: 1, RateLimitWindowSeconds: 5 } });
  const one = await connectHost(fixture.url, fixture.cookieOf(fixture.owner));
  const two = await connectHost(fixture.url, fixture.cookieOf(fixture.owner));
  const statuses: number[] = [];
  for (let turn = 0; turn < 3; turn += 1)
    for (const { tokens } of [one, two]) statuses.push(await fixture.statusWith(tokens.access));
  t.strictSame(statuses, [200, 200, 200, 200, 200, 429]);
});
