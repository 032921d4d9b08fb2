import { oneConnection } from '../../../kit/http.ts';
/** Contract, section 8.1: the HTTP rate limiter with default settings. Each check uses an address of its own. */
import { type Check, checksOf } from '../check.ts';
import { type Answer, type Headers, read, send } from '../client.ts';
import { scopeIds, scopeLimit, WINDOW_SECONDS } from '../tables.ts';
import { expectOk, newKey } from '../unshown.ts';
import { verifiedHeaders, type World } from '../world.ts';

const INFO = '/auth/v1/get_info';
/** More requests than two quotas of any scope. */
const REQUESTS_MAX = 150;

const CONNECTION = scopeLimit('ApiRPSLimit');
const ADDRESS = scopeLimit('IpRPSLimit');
const PUBLIC_KEY = scopeLimit('PubKeyApiRPSLimit');
const SESSION = scopeLimit('SessionApiRPSLimit');
const MCP_LOGIN = scopeLimit('McpApiRPSLimit');

interface Limit {
  readonly scope: string;
  readonly quota: number;
  readonly remaining: number;
  readonly seconds: number;
}

/** Parses `X-RateLimit` of an answer. */
function limitOf(answer: Answer): Limit {
  const [, scope = '', quota, remaining, seconds] =
    /^s=([a-z]);l=(\d+);r=(\d+);t=(\d+)$/.exec(answer.header('x-ratelimit')) ?? [];
  return { scope, quota: Number(quota), remaining: Number(remaining), seconds: Number(seconds) };
}

interface Refused {
  /** Requests accepted in the window of the refusal. */
  readonly accepted: readonly Answer[];
  readonly refusal: Answer;
}

/** Sends requests one after the other until one is refused. */
async function untilRefused(ask: (sent: number) => Promise<Answer>): Promise<Refused> {
  let accepted: Answer[] = [];
  for (let sent = 0; sent < REQUESTS_MAX; sent += 1) {
    const answer = await ask(sent);
    if (answer.status === 429) return { accepted, refusal: answer };
    const before = accepted.at(-1);
    // A longer time to the reset than before: a new window has begun.
    if (before !== undefined && limitOf(answer).seconds > limitOf(before).seconds) accepted = [];
    accepted.push(answer);
  }
  throw new Error(`${REQUESTS_MAX} requests, and none was refused`);
}

/** A loopback address that no other check uses. */
const from = (host: number) => `127.0.8.${host}`;
const ask = (world: World, host: number, headers: Headers = {}, path = INFO) =>
  send('GET', world.gateway.url + path, { from: from(host), headers });

const remainingOf = (answers: readonly Answer[]) => answers.map((answer) => limitOf(answer).remaining);
const countdown = (quota: number) => Array.from({ length: quota }, (_, at) => quota - 1 - at);

const WINDOW = checksOf('8.1', {
  'on one connection the quota passes in a window and the next request is 429, code 1002, scope c': {
    sentence: `The quota of a window is rps * RateLimitWindowSeconds. A request above it is answered with 429 and code 1002. … ${CONNECTION.row}`,
    async run(t, world) {
      const agent = oneConnection();
      t.teardown(() => agent.destroy());
      const { accepted, refusal } = await untilRefused(() =>
        send('GET', world.gateway.url + INFO, { from: from(1), agent }),
      );
      const { rps, quota } = CONNECTION;
      t.equal(quota, rps * WINDOW_SECONDS);
      t.same(remainingOf(accepted), countdown(quota));
      t.same(refusal.refusal, [429, 1002]);
      t.match(limitOf(refusal), { scope: 'c', quota, remaining: 0 });
    },
  },
  'one request on each of 25 connections passes, one connection after the other and all at once': {
    sentence: CONNECTION.row,
    async run(t, world) {
      const inTurn: number[] = [];
      while (inTurn.length < 25) inTurn.push((await ask(world, 2)).status);
      const atOnce = await Promise.all(Array.from({ length: 25 }, () => ask(world, 2)));
      t.same([...new Set([...inTurn, ...atOnce.map(({ status }) => status)])], [200]);
    },
  },
  'from one address with new connections the quota passes in a window, the next request is scope i; another address passes':
    {
      sentence: `${ADDRESS.row} … A request without a session counts for its connection, then for its IP.`,
      async run(t, world) {
        const { accepted, refusal } = await untilRefused(() => ask(world, 3));
        const { quota } = ADDRESS;
        t.equal(accepted.length, quota);
        t.match(limitOf(refusal), { scope: 'i', quota, remaining: 0 });
        t.equal((await ask(world, 4)).status, 200);
      },
    },
  'login options for one pkey pass up to the quota, the next are scope p; another key passes; get_info does not count it':
    {
      sentence: `${PUBLIC_KEY.row} … Routes with the flag CheckPubKey count for the public key too.`,
      async run(t, world) {
        const pkey = newKey().publicKey;
        const options = (key: string) => ask(world, 5, { pkey: key }, '/auth/v1/login_options');
        const { accepted, refusal } = await untilRefused(() => options(pkey));
        const { quota } = PUBLIC_KEY;
        t.equal(accepted.length, quota);
        t.match(limitOf(refusal), { scope: 'p', quota, remaining: 0 });
        t.equal((await options(newKey().publicKey)).status, 200);
        t.equal((await ask(world, 5, { pkey })).status, 200);
      },
    },
  'the quota of a session passes on one connection, the next request is scope s, on another connection too': {
    sentence: `${SESSION.row} … A request with a session counts for the session.`,
    async run(t, world) {
      const { auth } = await world.person();
      const agent = oneConnection();
      t.teardown(() => agent.destroy());
      const sessions = (sending: object) =>
        send('GET', `${world.gateway.url}/auth/v1/sessions`, { headers: auth, from: from(6), ...sending });
      const { accepted, refusal } = await untilRefused((sent) => sessions(sent % 2 === 0 ? { agent } : {}));
      const { quota } = SESSION;
      t.same(remainingOf(accepted), countdown(quota));
      t.match(limitOf(refusal), { scope: 's', quota, remaining: 0 });
    },
  },
  'logins of a key pass up to the quota, the next is scope m; another key logs in': {
    sentence: `${MCP_LOGIN.row} … POST /auth/v1/mcp_login counts for the MCP scope as well.`,
    also: [['7.2', '429 | Access rate limit | The quota of the key is used up']],
    async run(t, world) {
      const [person, other] = [await world.mcpPerson(), await world.mcpPerson()];
      const login = ({ key }: typeof person) => world.mcpLogin(verifiedHeaders(key), { from: from(7) });
      const { accepted, refusal } = await untilRefused(() => login(person));
      const { quota } = MCP_LOGIN;
      t.equal(accepted.length, quota);
      t.match(limitOf(refusal), { scope: 'm', quota, remaining: 0 });
      t.equal(refusal.at('error.message'), 'Access rate limit');
      t.equal((await login(other)).status, 200);
    },
  },
  'two sessions of one key share the quota of the key, the next call is scope p': {
    sentence: 'Calls of /mcp count for the public key.',
    also: [['7.4', '1002 | AccessRateLimit | A rate quota is used up (HTTP 429)']],
    async run(t, world) {
      const person = await world.mcpPerson();
      const agents = [await world.agent('McpVerified', person), await world.agent('McpVerified', person)];
      const { accepted, refusal } = await untilRefused((sent) =>
        world.rpc(agents[sent % 2]?.auth ?? {}, 'tools/list', undefined, { from: from(8) }),
      );
      const { quota } = PUBLIC_KEY;
      t.same(remainingOf(accepted), countdown(quota));
      t.same(refusal.refusal, [429, 1002]);
      t.match(limitOf(refusal), { scope: 'p', quota, remaining: 0 });
    },
  },
});

const FREE = checksOf('8.1', {
  'health answers seventy times on one connection, without X-RateLimit': {
    sentence: 'Routes with the flag NoRateLimit are not limited.',
    async run(t, world) {
      await unlimited(world, '/health', t);
    },
  },
  'a page answers seventy times on one connection, without X-RateLimit': {
    sentence: 'Neither are static files of the file cache.',
    async run(t, world) {
      await unlimited(world, '/docs/swagger/', t);
    },
  },
});

async function unlimited(world: World, path: string, t: Parameters<Check['run']>[0]): Promise<void> {
  const agent = oneConnection();
  t.teardown(() => agent.destroy());
  const answers: Answer[] = [];
  while (answers.length < 70)
    answers.push(await send('GET', world.gateway.url + path, { from: from(9), agent }));
  t.same([...new Set(answers.map(({ status }) => status))], [200]);
  t.same([...new Set(answers.map((answer) => answer.header('x-ratelimit')))], ['']);
}

const HEADERS = checksOf('8.1', {
  'both answers have the header, the refused one Retry-After; a request after that time is served': {
    sentence:
      'Accepted and refused requests have the header X-RateLimit: s=<scope>;l=<window quota>;r=<remaining>;t=<seconds to reset>. … A refusal has Retry-After: <seconds> too, which decides how long to wait.',
    apart: true,
    async run(t, world) {
      const agent = oneConnection();
      t.teardown(() => agent.destroy());
      const get = () => send('GET', world.gateway.url + INFO, { from: from(10), agent });
      const { accepted, refusal } = await untilRefused(get);
      const { quota } = CONNECTION;
      for (const answer of [...accepted, refusal]) t.match(limitOf(answer), { scope: 'c', quota });
      t.equal(accepted.at(-1)?.header('retry-after'), '');
      const seconds = Number(refusal.header('retry-after'));
      t.ok(seconds >= 1 && seconds <= WINDOW_SECONDS, refusal.header('retry-after'));
      // The check shows the wait itself.
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
      t.equal((await get()).status, 200);
    },
  },
  'refusals outside the five scopes have a scope too: i for wrong codes and unknown keys, s for a user': {
    sentence: 'Its scopes: c connection, i ip, p pkey, s session, m mcp.',
    async run(t, world) {
      const wrongCode = { 'X-MCP-Code': 'no-such-code' };
      const codes = await untilRefused(() =>
        world.rpc(wrongCode, 'tools/list', undefined, { from: from(11) }),
      );
      t.equal(limitOf(codes.refusal).scope, 'i', 'codes');
      await world.setting('UnknownKeyFailuresPerMinute', 2);
      const keys = await untilRefused(() => world.mcpLogin(verifiedHeaders(newKey()), { from: from(12) }));
      t.equal(limitOf(keys.refusal).scope, 'i', 'unknown keys');
      await world.setting('UserApiRPSLimit', 1);
      const person = await world.person();
      const other = (await world.loginAgain(person)).header('set-cookie').split(';')[0] ?? '';
      const sessions = [person.auth, { Cookie: other }];
      const user = await untilRefused((sent) =>
        ask(world, 13, sessions[sent % 2] ?? {}, '/auth/v1/sessions'),
      );
      t.ok(user.accepted.length <= 5, 'fewer than one session may send');
      t.equal(limitOf(user.refusal).scope, 's', 'user');
      await world.setting('UserApiRPSLimit', 30);
    },
  },
  'the panel has a settings page; after a change every scope uses the new window and quota': {
    sentence: `All scopes share one fixed window. … ${scopeLimit('RateLimitWindowSeconds').row} … /ProxyAdmin/Settings in the admin panel changes the settings.`,
    async run(t, world) {
      t.match((await world.get('/ProxyAdmin/Settings')).header('content-type'), /^text\/html/);
      const { auth } = await world.admin();
      const list = expectOk('settings', await world.get('/ProxyAdmin/api/settings', auth)).listAt('result');
      const ids = new Map(list.map((row) => [read(row, 'name'), read(row, 'id')]));
      for (const [name, id] of scopeIds()) t.equal(ids.get(name), id, name);
      t.ok(limitOf(await ask(world, 14)).seconds <= WINDOW_SECONDS);
      await world.setting('RateLimitWindowSeconds', 3_600);
      await world.setting('ApiRPSLimit', 4);
      const [connection, session] = [
        limitOf(await ask(world, 14)),
        limitOf(await ask(world, 14, auth, '/auth/v1/sessions')),
      ];
      t.match(
        [connection, session],
        [
          { scope: 'c', quota: 14_400 },
          { scope: 's', quota: 3_600 * SESSION.rps },
        ],
      );
      t.ok(
        Math.abs(connection.seconds - session.seconds) <= 1 && connection.seconds > WINDOW_SECONDS,
        'one window',
      );
      await world.setting('RateLimitWindowSeconds', WINDOW_SECONDS);
      await world.setting('ApiRPSLimit', CONNECTION.rps);
    },
  },
});

export const CHECKS: readonly Check[] = [...WINDOW, ...FREE, ...HEADERS];
