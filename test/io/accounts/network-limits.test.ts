/** Limits that a caller multiplied by many networks, keys or accounts: logins of a flooded key, accounts of one network. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { DAY_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { type Answer, type Key, makeKey, mcpProof, startAccounts } from '../../support/account.ts';
import { START_MS } from '../../support/actors/actors.ts';
import { startChat } from '../../support/codes.ts';

const NOW_SECONDS = START_MS / SECOND_MS;
const REGISTER = '/auth/v1/keys/register_key';

const from = (address: string) => ({ 'X-Forwarded-For': address });

function start(t: Test, options: Parameters<typeof startAccounts>[0] = {}) {
  return closeAfter(t, startAccounts({ trustedProxies: ['127.0.0.1'], ...options }));
}

/** Uses up the ten-fold share of a key: ten networks, each at its quota of five seconds. */
async function flooded(t: Test, rps = 2) {
  const fixture = start(t, { settings: { McpApiRPSLimit: rps } });
  const { mcpLogin, signUp, allowAgent } = fixture;
  const owner = await signUp();
  const agent = makeKey();
  await allowAgent(owner, agent);
  for (let network = 0; network < 10; network += 1)
    for (let n = 0; n < 5 * rps; n += 1)
      await mcpLogin({ 'X-PublicKey': agent.publicKey, ...from(`198.51.100.${network}`) });
  const login = (address: string, key: Key = agent) => {
    return mcpLogin({ ...mcpProof(key), 'X-PublicKey': agent.publicKey, ...from(address) });
  };
  const log = () => fixture.actors.system.query(user, owner.userId, { type: 'logins' });
  return { ...fixture, agent, login, log };
}

function isLimited({ status, error, headers }: Answer): boolean {
  return status === 429 && error?.code === 1002 && Number(headers['retry-after']) >= 1;
}

// covers R95 R102 S68
t.test(
  'mcp_login: a key flooded by name from everywhere, its owner still logs in with a signature',
  async (t) => {
    const { agent, login, mcpLogin, log } = await flooded(t);
    const served = await login('203.0.113.1');
    t.match(served, { status: 200, result: { loginType: 'McpVerified' } });
    t.equal(served.headers['x-ratelimit'], 's=m;l=10;r=9;t=5');
    t.ok(isLimited(await mcpLogin({ 'X-PublicKey': agent.publicKey, ...from('203.0.113.2') })), 'unsigned');
    const before = (await log()).length;
    const forged = await login('203.0.113.3', makeKey());
    t.ok(isLimited(forged), 'forged');
    t.match(forged.headers['x-ratelimit'], /^s=m;l=10;r=0;/);
    const late = { ...mcpProof(agent, NOW_SECONDS - 301), ...from('203.0.113.4') };
    t.ok(isLimited(await mcpLogin(late)), 'a signature of yesterday');
    t.equal((await log()).length, before, 'refusals do not push out what the owner can read');
    t.match(await login('198.51.100.1'), { status: 429 }, 'a network over its own quota proves nothing');
  },
);

// covers S68
t.test(
  'mcp_login: signatures beyond the share of all are checked 10 a second and network, 100 in all',
  async (t) => {
    const { login, actors, http } = await flooded(t, 4);
    const forger = makeKey();
    for (let n = 0; n < 10; n += 1) await login('203.0.113.1', forger);
    t.ok(isLimited(await login('203.0.113.1')), 'that network has used its second up');
    t.equal((await login('203.0.113.2')).status, 200, 'another one has not');
    for (let network = 3; network < 12; network += 1)
      for (let n = 0; n < 10; n += 1) await login(`203.0.113.${network}`, forger);
    t.ok(isLimited(await login('203.0.113.99')), 'nothing is left in all');
    t.equal(http.limiter.counters().keyProof.limited, 3, 'refusals are counted');
    await actors.advance(SECOND_MS);
    t.equal((await login('203.0.113.99')).status, 200, 'the next second');
  },
);

// covers R53 S70
t.test(
  'sign-ups: a network at its day is refused before anything is used up, another one signs up',
  async (t) => {
    const fixture = start(t, { settings: { SignUpsPerNetworkPerDay: 2 } });
    const { post, actors, http, settings, signed } = fixture;
    const signUp = async (address: string) => post(REGISTER, await signed(makeKey()), from(address));
    const forged = { ...(await signed(makeKey())), publicKey: makeKey().publicKey };
    const { status } = await post(REGISTER, forged, from('198.51.100.1'));
    t.equal(status, 401, 'creates nothing, counts nothing');
    for (let n = 0; n < 2; n += 1) t.equal((await signUp('198.51.100.1')).status, 200);
    const body = await signed(makeKey());
    const refused = await post(REGISTER, body, from('198.51.100.1'));
    t.match(refused, { status: 429, error: { code: 1002 }, headers: { 'retry-after': '86400' } });
    t.equal((await post(REGISTER, body, from('198.51.100.2'))).status, 200, 'the challenge is good still');
    t.equal(http.limiter.counters().signUp.limited, 1);
    const taken = makeKey();
    await post(REGISTER, await signed(taken), from('203.0.113.1'));
    t.equal((await post(REGISTER, await signed(taken), from('198.51.100.2'))).status, 409);
    t.equal((await signUp('198.51.100.2')).status, 200, 'what was not created is given back');
    settings.set('SignUpsPerNetworkPerDay', 0);
    t.equal((await signUp('198.51.100.1')).status, 200, '0: off');
    settings.set('SignUpsPerNetworkPerDay', 2);
    await actors.advance(DAY_MS);
    t.equal((await signUp('198.51.100.1')).status, 200, 'the next day');
  },
);

t.test('sign-ups: the /64 of one /48 share sixteen, and a key added with a session is none', async (t) => {
  const { post, signed } = start(t, { settings: { SignUpsPerNetworkPerDay: 1 } });
  const signUp = async (address: string) =>
    (await post(REGISTER, await signed(makeKey()), from(address))).status;
  let created = 0;
  for (let n = 0; n < 30; n += 1)
    if ((await signUp(`2001:db8:0:${(n * 256).toString(16)}::1`)) === 200) created += 1;
  t.equal(created, 16);
  t.equal(await signUp('2001:db8:1::1'), 200);
});

// covers R53 S70
t.test('sign-ups: loopback is counted in Production alone', async (t) => {
  const here = start(t, { settings: { SignUpsPerNetworkPerDay: 1 } });
  for (let n = 0; n < 3; n += 1) await here.signUp();
  const live = start(t, { settings: { SignUpsPerNetworkPerDay: 1 }, site: { production: true } });
  const first = await live.signUp();
  t.match(await live.post(REGISTER, await live.signed(makeKey())), { status: 429, error: { code: 1002 } });
  t.equal((await live.addKey(first.sid, makeKey(), 'claim')).status, 200);
});

// covers R53 S70
t.test('sign-ups: the first login with a code counts, a later one does not', async (t) => {
  const chat = startChat();
  const { post, actors } = start(t, { codes: chat.port, settings: { SignUpsPerNetworkPerDay: 1 } });
  const login = async (phone: string, address: string) => {
    await actors.advance(60 * SECOND_MS);
    const { result } = await post('/auth/v1/login_phone', { phone }, from(address));
    await actors.settle();
    const { challengeId } = result as { challengeId: number };
    return post('/auth/v1/login', { challengeId, code: chat.last().code }, from(address));
  };
  t.match(await login('+491701234567', '198.51.100.1'), { status: 200, result: { newAccount: true } });
  t.match(await login('+491701234568', '198.51.100.1'), { status: 429, error: { code: 1002 } });
  t.match(await login('+491701234567', '198.51.100.1'), { status: 200, result: { newAccount: false } });
  t.match(await login('+491701234568', '198.51.100.2'), { status: 200, result: { newAccount: true } });
});
