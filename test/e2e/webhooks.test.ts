/** Webhooks on the program: a module pushes events, a receiver on loopback fails, the process is killed in between. */
import { rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import { expectOk, type Json, newKey, type Person, request, signUp } from '../../kit/agent.ts';
import { listenFor } from '../../kit/http.ts';
import { HIGH_LIMITS, launch } from '../../kit/launch.ts';
import { count } from '../support/depth.ts';

t.setTimeout(240_000);

/** Each ends with a kill, every second one before all its events have arrived. */
const ROUNDS = count(12);
const MODULE_KEY = 'core-module-key-0123456789';
const SETTINGS = {
  ...HIGH_LIMITS,
  EventReorderMilliseconds: 0,
};
const adminKey = newKey();
const CONFIGURATION = {
  Settings: SETTINGS,
  Modules: { core: { url: 'http://127.0.0.1:9', key: MODULE_KEY } },
  Admin: { publicKeys: [adminKey.publicKey] },
};

/** Serves all tests, in the process of the moment. */
let gateway = await launch({ configuration: CONFIGURATION });
const { dataPath } = gateway;
t.teardown(async () => {
  await gateway.stop();
  rmSync(dataPath, { recursive: true, force: true });
});

async function again(): Promise<void> {
  await gateway.kill();
  gateway = await launch({ configuration: CONFIGURATION, dataPath });
}

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly status: number;
}

interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** Status of the next answer; 'hang': none. */
  answer: (body: string) => number | 'hang';
  took(n: number): Promise<void>;
}

const numbersOf = (body: string) =>
  [JSON.parse(body) as { data: { n: number } } | { data: { n: number } }[]].flat().map(({ data }) => data.n);

async function startReceiver(t: Test): Promise<Receiver> {
  const waiting = new Map<number, () => void>();
  const taken = new Set<number>();
  const server = createServer(async (incoming, response) => {
    const body = await text(incoming);
    const status = receiver.answer(body);
    if (status === 'hang') return;
    receiver.received.push({ headers: incoming.headers, body, status });
    response.writeHead(status).end('ok');
    if (status !== 200) return;
    for (const n of numbersOf(body)) {
      taken.add(n);
      waiting.get(n)?.();
    }
  });
  const { url } = await listenFor(t, server);
  const receiver: Receiver = {
    url: `${url}/hook`,
    received: [],
    answer: () => 200,
    took: (n) => (taken.has(n) ? Promise.resolve() : new Promise((resolve) => waiting.set(n, resolve))),
  };
  return receiver;
}

async function push(events: readonly object[]): Promise<void> {
  const headers = { 'X-Module-Key': MODULE_KEY };
  expectOk('push', await request(`${gateway.internal}/internal/v1/events`, { headers, body: { events } }));
}

const event = (n: number, crmId?: string) => ({
  module: 'core',
  tick: String(1_000 + n),
  type: 'Test',
  ...(crmId === undefined ? {} : { crmId }),
  data: { id: String(n), n },
});

const sending = (person: Person) => async (path: string, body?: object) => {
  const headers = { Cookie: person.cookie };
  const answer = await request(`${gateway.url}${path}`, { headers, body });
  return expectOk(path, answer).json['result'] as Json;
};

async function openStream({ cookie }: Person) {
  const answer = await fetch(`${gateway.url}/auth/v1/events`, { headers: { Cookie: cookie } });
  const reader = answer.body?.getReader();
  let seen = '';
  return {
    seen: () => seen,
    async until(word: RegExp) {
      while (!word.test(seen)) {
        const { value, done } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) throw new Error(`the stream ended: ${seen}`);
        seen += new TextDecoder().decode(value);
      }
    },
    end: async () => await reader?.cancel(),
  };
}

interface Rotation {
  readonly send: ReturnType<typeof sending>;
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
  readonly id: string;
  /** Those before and after the rotation. */
  readonly keys: readonly [former: string, next: string];
}

/** X-API-Key stays the former key until the owner ends the rotation; until then both keys sign. */
async function checkRotation(t: Test, { send, receiver, id, keys }: Rotation): Promise<void> {
  const [former, next] = keys;
  const ping = async () => {
    t.match(await send('/auth/v1/app/ping', { id }), { delivered: true, status: 200 });
    const { headers = {}, body = '' } = receiver.received.at(-1) ?? {};
    const verify = (key: string) =>
      new Webhook(key, { format: 'raw' }).verify(body, headers as Record<string, string>);
    return { sent: headers['x-api-key'], verify };
  };
  const rotating = await ping();
  t.equal(rotating.sent, former, 'after a crash');
  for (const key of keys) t.ok(rotating.verify(key), 'after a crash');
  const finished = await send('/auth/v1/app/rotate_key', { id, finish: true });
  t.equal(finished['apiKey'], undefined);
  await again();
  const { sent, verify } = await ping();
  t.equal(sent, next);
  t.ok(verify(next));
  t.throws(() => verify(former), 'the former key signs no more');
}

// covers R85
t.test('webhooks: each decision of an admin is an event for the owner and for the application', async (t) => {
  const receiver = await startReceiver(t);
  const [admin, owner, outsider] = [
    await signUp(gateway.url, adminKey),
    await signUp(gateway.url),
    await signUp(gateway.url),
  ];
  const send = sending(owner);
  const registration = { name: 'Shop', url: 'https://shop.example', webhookUrl: receiver.url };
  const { id, apiKey } = await send('/auth/v1/app/upsert_usr_app', registration);
  const [stream, foreign] = [await openStream(owner), await openStream(outsider)];
  const delivered: object[] = [];
  let heard = () => {};
  receiver.answer = (body) => {
    delivered.push(...[JSON.parse(body) as object].flat());
    heard();
    return 200;
  };
  const told = (count: number) =>
    new Promise<void>((resolve) => {
      heard = () => {
        if (delivered.length >= count) resolve();
      };
      heard();
    });
  const decided: object[] = [];
  const administer = sending(admin);
  const decide = async (flags: { approved: boolean; disabled: boolean }) => {
    decided.push({
      type: 'AppApprovalChanged',
      module: 'gateway',
      data: { appId: String(id), name: 'Shop', ...flags },
    });
    await administer('/ProxyAdmin/api/apps/update', { appId: String(id), ...flags });
    const { approved, disabled } = flags;
    await stream.until(
      new RegExp(
        `(event: AppApprovalChanged[^]*){${decided.length}}"approved":${approved},"disabled":${disabled}`,
      ),
    );
  };
  await decide({ approved: true, disabled: false });
  await told(1);
  await decide({ approved: false, disabled: false });
  await told(2);
  t.match(delivered, decided);
  await decide({ approved: false, disabled: true });
  await decide({ approved: true, disabled: false });
  await told(4);
  t.match(delivered, decided, 'the webhook of a disabled application gets it once it is enabled');
  for (const { headers, body } of receiver.received)
    t.ok(new Webhook(String(apiKey), { format: 'raw' }).verify(body, headers as Record<string, string>));
  await push([event(200_003, outsider.userId)]);
  await foreign.until(/event: Test/);
  t.notMatch(foreign.seen(), /AppApprovalChanged/);
  await stream.end();
  await foreign.end();
});

// covers R85
t.test(
  'webhooks: over kill -9 and a failing receiver every event arrives, in order, verified by the reference library',
  async (t) => {
    const receiver = await startReceiver(t);
    const owner = await signUp(gateway.url);
    const outsider = await signUp(gateway.url);
    const send = sending(owner);
    const registration = { name: 'Shop', url: 'https://shop.example', webhookUrl: receiver.url };
    const created = await send('/auth/v1/app/upsert_usr_app', registration);
    const id = String(created['id']);
    const apiKey = String(created['apiKey']);
    // Fails at random, sometimes without an answer; the sequence is the same in every run.
    let attempts = 0;
    receiver.answer = () => {
      attempts += 1;
      return attempts % 7 === 3 ? 500 : 200;
    };
    let n = 0;
    let next = '';
    for (let round = 0; round < ROUNDS; round += 1) {
      const events: object[] = [];
      for (let count = 0; count < 25; count += 1) {
        n += 1;
        events.push(event(n, count % 3 === 0 ? undefined : owner.userId));
        events.push(event(100_000 + n, outsider.userId));
      }
      if (round === ROUNDS - 1) next = String((await send('/auth/v1/app/rotate_key', { id }))['apiKey']);
      await push(events);
      if (round % 2 === 0) await receiver.took(n - 24);
      await again();
    }
    receiver.answer = () => 200;
    await send('/auth/v1/app/enable', { id });
    await receiver.took(n);
    const bodies = new Map<string, string>();
    const inOrder: number[] = [];
    for (const { headers, body, status } of receiver.received) {
      const verified = new Webhook(apiKey, { format: 'raw' }).verify(body, headers as Record<string, string>);
      if (JSON.stringify(verified) !== JSON.stringify(JSON.parse(body))) t.fail('verified');
      if (headers['x-api-key'] !== apiKey) t.fail('X-API-Key');
      const webhookId = String(headers['webhook-id']);
      if (bodies.has(webhookId)) t.equal(body, bodies.get(webhookId), 'a repetition has the same bytes');
      else if (status === 200) inOrder.push(...numbersOf(body));
      if (status === 200) bodies.set(webhookId, body);
    }
    t.same(
      inOrder,
      Array.from({ length: n }, (_, index) => index + 1),
      'each once, in order, no foreign event',
    );
    const deliveries = await send(`/auth/v1/app/deliveries?id=${id}`);
    t.ok(Number((deliveries['items'] as Json)['length']) > 0);
    const info = await send(`/auth/v1/app/info?id=${id}`);
    t.match(info, { last_tick: String(1_000 + n), webhook: { state: 'active' } });

    await checkRotation(t, { send, receiver, id, keys: [apiKey, next] });
  },
);

// Ends the gateway: no test comes after it.
t.test(
  'webhooks: a hanging receiver times out, its owner gets an event on the stream, and a stop does not wait',
  async (t) => {
    const receiver = await startReceiver(t);
    const owner = await signUp(gateway.url);
    const send = sending(owner);
    const registration = { name: 'Shop', url: 'https://shop.example', webhookUrl: receiver.url };
    const id = String((await send('/auth/v1/app/upsert_usr_app', registration))['id']);
    const stream = await openStream(owner);
    receiver.answer = () => 'hang';
    await push([event(200_001, owner.userId)]);
    await stream.until(/event: WebhookFailing/);
    t.match(stream.seen(), new RegExp(`"appId":"${id}"`));
    t.match(stream.seen(), /"failure":"timed_out"/);
    await push([event(200_002, owner.userId)]);
    receiver.answer = () => 410;
    await send('/auth/v1/app/enable', { id });
    await stream.until(/event: WebhookDisabled/);
    t.match(await send(`/auth/v1/app/info?id=${id}`), { webhook: { state: 'disabled', reason: 'gone' } });
    await stream.end();
    const exit = await gateway.stop();
    t.equal(exit.code, 0);
    t.notMatch(gateway.output().stderr, /ghk_|"level":"error"/);
  },
);
