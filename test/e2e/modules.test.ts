import t from 'tap';
import { type Answer, callTool, mcpLogin, request, signUpAgent } from '../../kit/agent.ts';
import { launch, type RunningGateway } from '../../kit/launch.ts';
import { count } from '../support/depth.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

t.setTimeout(120_000);

const CONFIGURATION = {
  Settings: { PubKeyApiRPSLimit: 10_000, ApiRPSLimit: 10_000, IpRPSLimit: 10_000 },
  McpTools: {
    hasty_balance: {
      endpoint: 'wallet:/wallet/v1/balance/get',
      method: 'GET',
      description: 'The balance, or nothing after 300 ms.',
      inputSchema: { type: 'object', properties: {} },
      timeoutMs: 300,
    },
  },
};

/** Between two kills. */
const PAYMENTS = 150;

interface Agent {
  userId: string;
  call(name: string, values?: object): Promise<Answer>;
}

async function agentOf({ url }: RunningGateway): Promise<{ userId: string; bearer: string }> {
  const person = await signUpAgent(url);
  const { json } = await mcpLogin(url, person.key, Date.now());
  return { userId: person.userId, bearer: String(json['result']?.['sessionId']) };
}

async function enrol(): Promise<Agent> {
  const { userId, bearer } = await agentOf(gateway);
  return { userId, call: (name, values = {}) => callTool(gateway.url, bearer, name, values) };
}

async function fault(mode: string, delayMs?: number): Promise<void> {
  const body = { module: 'wallet', mode, ...(delayMs === undefined ? {} : { delayMs }) };
  const { status } = await request(`${gateway.sandbox}/sandbox/v1/fault`, { body });
  if (status !== 200) throw new Error(`fault ${mode}: ${status}`);
}

/** The JSON-RPC error, else `ok` or `isError` and the module's own text. */
function outcomeOf(answer: Answer): string {
  const { error, result } = answer.json;
  if (error !== undefined) return `${error['code']}`;
  return `${result?.['isError'] === undefined ? 'ok' : 'isError'} ${JSON.stringify(result?.['content'])}`;
}

/** One program for the whole file, in the process of the moment: each test resets the fault of its module. */
const dataPath = temporaryFolder(t);
const start = () => launch({ args: ['--sandbox'], dataPath, configuration: CONFIGURATION });
let gateway = await start();
t.teardown(() => gateway.stop());

// covers R6
t.test(
  'module down: -32000 until the breaker opens, then at once; other endpoints are still tried',
  async (t) => {
    const agent = await enrol();
    t.match(outcomeOf(await agent.call('wallet_list_addresses')), /^ok .*demo1/);
    await fault('down');
    for (let failure = 0; failure < 5; failure += 1) {
      const answer = await agent.call('wallet_list_addresses');
      t.equal(answer.status, 200);
      t.match(answer.json['error'], { code: -32000, message: /Module failed/ });
    }
    t.match((await agent.call('wallet_list_addresses')).json['error'], {
      code: -32000,
      message: /Module unavailable/,
    });
    t.match((await agent.call('wallet_get_info')).json['error'], { code: -32000, message: /Module failed/ });
    await fault('ok');
    t.match(
      (await agent.call('wallet_list_addresses')).json['error'],
      { message: /Module unavailable/ },
      'still open',
    );
    t.match(outcomeOf(await agent.call('wallet_get_info')), /^ok /);
    const { text } = await request(`${gateway.internal}/metrics`);
    t.match(text, /^gatehouse_module_breakers_open [1-9]/m, 'the breaker shows in the metrics');
  },
);

// covers S156
t.test(
  'answer cut off: the agent repeats the transfer with the same externalId, and the money moves once',
  async (t) => {
    const [agent, other] = [await enrol(), await enrol()];
    await other.call('wallet_get_info');
    const values = { currency: 'DEMO', amount: '10', toUserId: other.userId, externalId: '7' };
    await fault('cut');
    t.match((await agent.call('wallet_internal_transfer', values)).json['error'], { code: -32000 });
    await fault('ok');
    t.match(
      outcomeOf(await agent.call('wallet_internal_transfer', values)),
      /^ok .*"balance\\*":\\*"990\.00/,
    );
    t.match(outcomeOf(await other.call('wallet_get_balance', { currency: 'DEMO' })), /^ok .*1010\.00/);
  },
);

// covers S149
t.test(
  'kill -9 while agents pay: each payment, repeated with its externalId until acknowledged, moves money once',
  async (t) => {
    const [payer, payee] = [await agentOf(gateway), await agentOf(gateway)];
    await callTool(gateway.url, payee.bearer, 'wallet_get_info');
    let acknowledged = 0;
    let interrupted = 0;
    const payOne = async (number: number): Promise<void> => {
      const values = {
        currency: 'GATE',
        amount: '0.00000001',
        toUserId: payee.userId,
        externalId: String(number),
      };
      const answer = await callTool(gateway.url, payer.bearer, 'wallet_internal_transfer', values);
      if (!outcomeOf(answer).startsWith('ok ')) throw new Error(answer.text);
      acknowledged += 1;
    };
    /** Pays with externalIds `from`, `from + 8`, … until enough; returns the first that was not acknowledged. */
    const pay = async (from: number, until: number): Promise<number> => {
      let next = from;
      try {
        for (; acknowledged < until; next += 8) {
          await payOne(next);
          if (acknowledged === until) await gateway.kill();
        }
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        interrupted += 1;
      }
      return next;
    };
    let next = Array.from({ length: 8 }, (_, client) => client + 1);
    for (let until = PAYMENTS; until <= PAYMENTS * count(3); until += PAYMENTS) {
      next = await Promise.all(next.map((number) => pay(number, until)));
      await gateway.exited;
      gateway = await start();
    }
    // Payments interrupted by a kill may have been booked: repeat them until every payment is acknowledged.
    await Promise.all(next.map(payOne));
    await gateway.kill();
    gateway = await start();
    const { text } = await callTool(gateway.url, payee.bearer, 'wallet_get_balance', { currency: 'GATE' });
    const [, units = ''] = /"balance\\":\\"1000\.(\d{8})/.exec(text) ?? [];
    t.equal(Number(units), acknowledged, `${acknowledged} payments acknowledged, ${interrupted} interrupted`);
  },
);
