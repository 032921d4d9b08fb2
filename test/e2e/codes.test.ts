/** Login by phone and e-mail on the program; the codes arrive in the sandbox's outbox, also over a fault and kill -9. */
import t from 'tap';
import { type Answer, expectOk, request } from '../../kit/agent.ts';
import { HIGH_LIMITS, launch, type RunningGateway } from '../../kit/launch.ts';
import { arrival } from '../support/outbox.ts';

const CONFIGURATION = { Settings: HIGH_LIMITS };

function start(dataPath?: string): Promise<RunningGateway> {
  const data = dataPath === undefined ? {} : { dataPath };
  return launch({ configuration: CONFIGURATION, args: ['--sandbox'], ...data });
}

async function askByPhone({ url }: RunningGateway, phone: string): Promise<number> {
  const answer = expectOk('login_phone', await request(`${url}/auth/v1/login_phone`, { body: { phone } }));
  return Number(answer.json['result']?.['challengeId']);
}

function enter({ url }: RunningGateway, challengeId: number, code: string): Promise<Answer> {
  return request(`${url}/auth/v1/login`, { body: { challengeId, code } });
}

async function breakChat({ sandbox }: RunningGateway, mode: string): Promise<void> {
  const body = { module: 'chat', mode };
  expectOk('fault', await request(`${sandbox}/sandbox/v1/fault`, { body }));
}

// covers R60
t.test(
  'one-time codes: while the chat module is down the code is kept for delivery, over kill -9 too',
  async (t) => {
    let gateway = await start();
    const phone = '+4915112345678';
    await breakChat(gateway, 'down');
    const challengeId = await askByPhone(gateway, phone);
    const outbox = await request(`${gateway.sandbox}/sandbox/v1/outbox`);
    t.same(outbox.json['result']?.['deliveries'], [], 'nothing left');
    await gateway.kill();
    gateway = await start(gateway.dataPath);
    t.teardown(() => gateway.stop());
    const code = await arrival(gateway.sandbox, phone);
    const again = await request(`${gateway.url}/auth/v1/login_phone`, { body: { phone } });
    t.equal(again.status, 429, 'the wait before the next code survived as well');
    t.match(expectOk('login', await enter(gateway, challengeId, code)).json, {
      result: { newAccount: true },
    });
    const known = await request(`${gateway.url}/auth/v1/login_phone`, { body: { phone } });
    t.equal(known.status, 200, 'an address with a login has a quota of its own, apart from unknown callers');
  },
);
