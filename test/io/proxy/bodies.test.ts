/** Time-outs of proxied request bodies: a slow module does not fail a request, a slow client does. */
import type http from 'node:http';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { bodyOf } from '../../support/files/incoming-body.ts';
import { connectRaw, heldBodies, requestText } from '../../support/http.ts';
import { BEARER, type ProxyFixtureOptions, SID, startProxy } from '../../support/module.ts';
import { until } from '../../support/until.ts';

t.setTimeout(120_000);

const TOKEN = { Authorization: `Bearer ${BEARER}` };
/** Beyond the 8 to 12 s at which uWebSockets.js cuts a connection whose clock of 10 s runs. It cannot be set. */
const SLOW_MS = 13_000;

async function proxyOf(t: Test, options: ProxyFixtureOptions) {
  return closeAfter(t, await startProxy(options));
}

// covers S48
t.test(
  `a module that takes ${SLOW_MS / 1000} s (so does this test): its answer arrives, and 504 at the time-out`,
  async (t) => {
    const answering = await proxyOf(t, {
      proxyTimeoutMs: 2 * SLOW_MS,
      answer: (_asked, response) => setTimeout(() => response.end('at last'), SLOW_MS),
    });
    const silent = await proxyOf(t, { proxyTimeoutMs: SLOW_MS, answer: () => undefined });
    const post = (fields: Record<string, string>, body: string) =>
      requestText('POST', '/core/v1/slow', { ...TOKEN, ...fields }, body);
    const long = 'x'.repeat(300_000);
    const bodies = {
      'a body that came with its head': post({}, 'x'),
      'a body of many pieces': post({}, long),
      'a chunked body': post({ 'Transfer-Encoding': 'chunked' }, '1\r\nx\r\n0\r\n\r\n'),
      'no body': requestText('GET', '/core/v1/slow', TOKEN),
    };
    const ask = async (name: string, bytes: string, port: number, status: number) => {
      const connection = connectRaw(port);
      // The head and what fits beside it in one segment.
      const answer = await connection.ask(bytes).catch((error: unknown) => String(error));
      t.match(answer, { status }, `${name}: ${status}`);
      connection.close();
    };
    await Promise.all(
      Object.entries(bodies).flatMap(([name, bytes]) => [
        ask(name, bytes, answering.http.port, 200),
        ask(name, bytes, silent.http.port, 504),
      ]),
    );
  },
);

// covers S59
t.test('shares: 156 unfinished POSTs of one account leave the module to others', async (t) => {
  const proxy = await proxyOf(t, {});
  const post = requestText('POST', '/core/v1/slow', { ...TOKEN, 'Content-Length': '1000' });
  const slow = Array.from({ length: 156 }, () => connectRaw(proxy.http.port));
  t.teardown(() => {
    for (const connection of slow) connection.close();
  });
  for (const connection of slow) connection.send(`${post}x`);
  // 32 are read, 32 wait; the others are refused at once.
  const refused = await Promise.all(slow.slice(64).map((connection) => connection.answer()));
  t.ok(refused.every(({ status, headers }) => status === 429 && headers['retry-after'] === '1'));
  t.match(refused[0]?.headers['x-ratelimit'], /^s=s;l=[0-9]+;r=0;t=1$/, 'the share of a session');
  t.match(JSON.parse(refused[0]?.body ?? ''), {
    error: { code: 1002, detail: /too many calls to the module/ },
  });
  const other = { cookie: `sid=${SID}` };
  const answers = await Promise.all(
    Array.from({ length: 40 }, () =>
      proxy
        .send('/core/v1/echo', { method: 'POST', headers: other, body: 'whole' })
        .then(({ status }) => status),
    ),
  );
  t.ok(answers.every((status) => status === 200));
  t.equal(proxy.asked.length, 40, 'the module heard of no unfinished one');
  t.equal(proxy.audit.filter(({ fields }) => fields['outcome'] === 'limited').length, 92);
  const { held: waiting } = proxy.bounds.report().find(({ name }) => name === 'relayedWaiting') ?? {};
  t.equal(waiting, 32);
  for (const connection of slow) connection.close();
  await until(() =>
    proxy.bounds.report().every(({ name, held }) => !name.startsWith('relayed') || held === 0),
  );
});

t.test('shares: a body of 64 KiB goes out before its end, a shorter one when it is whole', async (t) => {
  let began = 0;
  const proxy = await proxyOf(t, {
    serve(request, response) {
      began += 1;
      request.resume().on('end', () => response.end('taken'));
    },
  });
  const put = (sizeBytes: number) =>
    requestText('PUT', '/core/v1/file', { ...TOKEN, 'Content-Length': String(sizeBytes) });
  const [long, short] = [connectRaw(proxy.http.port), connectRaw(proxy.http.port)];
  short.send(put(65_536), 'x'.repeat(65_535));
  long.send(put(65_537), 'x'.repeat(65_536));
  await until(() => began === 1);
  t.match(await short.ask('x'), { status: 200, body: 'taken' });
  t.match(await long.ask('x'), { status: 200, body: 'taken' });
  for (const connection of [long, short]) connection.close();
});

// covers S46
t.test('floor: a proxied body below 1 KiB/s is 408, and the module keeps nothing of the call', async (t) => {
  const { openBodies, second } = heldBodies();
  let began = 0;
  let cut = 0;
  const serve: http.RequestListener = (request) => {
    began += 1;
    request.resume().on('close', () => {
      cut += 1;
    });
  };
  const proxy = await proxyOf(t, { serve, pipeline: { openBodies } });
  const requests = {
    declared: [requestText('POST', '/core/v1/up', { ...TOKEN, 'Content-Length': '90000' }), 'x'],
    chunked: [requestText('POST', '/core/v1/up', { ...TOKEN, 'Transfer-Encoding': 'chunked' }), '1\r\nx\r\n'],
  } as const;
  for (const [name, [head, piece]] of Object.entries(requests)) {
    proxy.http.finished.length = 0;
    const connection = connectRaw(proxy.http.port);
    connection.send(head, piece);
    while (proxy.http.pipeline.counters().requestsInFlight === 0) await new Promise(setImmediate);
    let seconds = 0;
    for (; seconds < 20 && proxy.http.finished.length === 0; seconds += 1) {
      connection.send(piece);
      for (let turns = 0; turns < 50; turns += 1) await new Promise(setImmediate);
      second();
      await new Promise(setImmediate);
    }
    t.ok(seconds >= 10 && seconds <= 13, `${name}: after ten seconds in which it could send (${seconds})`);
    const answer = await connection.answer();
    t.equal(answer.status, 408, name);
    t.match(answer.body, '"code":1019', name);
    t.equal(answer.headers['connection'], 'close', name);
    t.match(proxy.http.finished, [{ status: 408, error: 'BodyTooSlow' }], name);
    connection.close();
    while (cut < began || proxy.http.pipeline.counters().requestsInFlight > 0)
      await new Promise(setImmediate);
    t.equal(proxy.http.pipeline.counters().bodyBytesInFlight, 0, name);
  }
});

// covers S46
t.test(
  'floor: the sink is notified of the end first, and seconds in which the client had to wait are not counted',
  (t) => {
    const { body, told, second, read } = bodyOf(true);
    read();
    for (let passed = 0; passed < 10; passed += 1) second(1);
    t.same(told, []);
    second(1);
    t.same(told, ['lost', 'slow']);
    const steady = bodyOf(true);
    steady.read();
    for (let passed = 0; passed < 60; passed += 1) steady.second(1024);
    t.same(steady.told, [], '1 KiB/s is enough');
    const held = bodyOf(true);
    held.read();
    for (let passed = 0; passed < 60; passed += 1) {
      held.body.pause();
      if (passed % 2 === 0) held.body.resume();
      held.second(1);
    }
    t.same(held.told, [], 'also where the wait was over before the second was');
    held.body.resume();
    for (let passed = 0; passed < 12; passed += 1) held.second(1);
    t.same(held.told, ['lost', 'slow'], 'the count continues after it');
    for (const { body } of [steady, held]) body.discard();
    body.discard();
    t.end();
  },
);

// covers S48
t.test(
  'a body whose last piece came while its client had to wait: the clock starts anew until the answer',
  (t) => {
    const { body, second, last, rearmed } = bodyOf(true);
    second(1);
    t.equal(rearmed.pauses, 1, 'kept until it is read');
    last();
    for (let passed = 0; passed < 12; passed += 1) second(0);
    t.equal(rearmed.pauses, 4, 'every 4 s');
    rearmed.waits = true;
    for (let passed = 0; passed < 12; passed += 1) second(0);
    t.equal(rearmed.pauses, 4, 'not for a client that does not read its answer');
    rearmed.waits = false;
    body.answered();
    for (let passed = 0; passed < 12; passed += 1) second(0);
    t.equal(rearmed.pauses, 4, 'and no more: the response is out of reach');
    const whole = bodyOf(true);
    whole.last();
    for (let passed = 0; passed < 12; passed += 1) whole.second(0);
    t.equal(whole.rearmed.pauses, 0, 'a body that came in one piece starts no clock');
    t.end();
  },
);

t.test('floor: a route with a floor of its own is not judged by this one', (t) => {
  const { body, told, second, read } = bodyOf(false);
  read();
  for (let passed = 0; passed < 60; passed += 1) second(1);
  t.same(told, []);
  body.discard();
  t.end();
});
