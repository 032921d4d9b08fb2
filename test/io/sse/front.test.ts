/** Event streams over the real front: raw sockets, real sessions, a log in memory. */
import type { Test } from 'tap';
import t from 'tap';
import { parseSessionOwner } from '../../../src/actors/accounts/owners.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import type { SettingName, SettingValue } from '../../../src/domain/settings/settings.ts';
import { isSessionAlive } from '../../../src/io/http/checks/session-lookup.ts';
import { createEventStreamRoute } from '../../../src/io/routes/event-stream.ts';
import { StreamHub } from '../../../src/io/sse/hub.ts';
import { type Account, type AccountFixture, cookie, startAccounts } from '../../support/account.ts';
import { EventClient, openEvents } from '../../support/events/event-client.ts';
import { MemoryLog } from '../../support/events/streams.ts';
import { connectRaw, type HttpFixture, requestText } from '../../support/http.ts';

t.setTimeout(120_000);

interface Fixture {
  readonly accounts: AccountFixture;
  readonly log: MemoryLog;
  readonly hub: StreamHub;
  readonly port: number;
  readonly ask: HttpFixture['ask'];
  /** Opens a stream that ends with the test. */
  open(
    account: Account | undefined,
    options?: ConstructorParameters<typeof EventClient>[1],
  ): Promise<EventClient>;
}

function start(t: Test, settings: Partial<Record<SettingName, SettingValue>> = {}): Fixture {
  const log = new MemoryLog();
  let hub: StreamHub | undefined;
  const accounts = startAccounts({
    settings,
    site: { origins: new Set(['https://own.example']) },
    routes: (actors, bounds) => {
      const own = new StreamHub({
        log,
        settings: actors.settings,
        bounds,
        clock: Date.now,
        schedule: nodeSchedule,
        random: Math.random,
        isSessionValid: ({ userId, sessionId }) => isSessionAlive(actors.system, userId, sessionId),
      });
      hub = own;
      actors.system.onRelease('sidHash', (_, owner) => own.sessionEnded(parseSessionOwner(owner).sessionId));
      return [createEventStreamRoute(own)];
    },
  });
  if (hub === undefined) throw new Error('no hub');
  const opened: EventClient[] = [];
  const started = hub;
  t.teardown(async () => {
    for (const client of opened) client.close();
    await started.drain();
    await accounts.close();
  });
  return {
    accounts,
    log,
    hub,
    port: accounts.http.port,
    ask: accounts.http.ask,
    open(account, options = {}) {
      const client = new EventClient(accounts.http.port, {
        ...(account === undefined ? {} : { sid: account.sid }),
        ...options,
      });
      opened.push(client);
      return client.opened();
    },
  };
}

const json = (n: number) => JSON.stringify({ n });

// covers R59 R86
t.test('stream: first bytes at once, then the events of its user and of all users', async (t) => {
  const { accounts, log, open } = start(t);
  const [alice, bob] = [await accounts.signUp(), await accounts.signUp()];
  const client = await open(alice);
  t.equal(client.status, 200);
  t.match(client.head, /content-type: text\/event-stream/i);
  t.match(client.head, /cache-control: no-store, no-transform/i);
  t.match(client.head, /x-accel-buffering: no/i);
  t.notMatch(client.head, /x-ratelimit/i);
  t.equal(client.reader.retryMs, 3_000);
  t.same(client.reader.comments, ['stream of events']);
  t.equal(client.reader.lastEventId, 'e1-0', 'the place is known before the first event');
  log.append(alice.userId, json(1));
  log.append(bob.userId, json(2));
  log.append(undefined, json(3), 'Notice');
  await client.until(({ reader }) => reader.events.length === 2);
  t.same(client.reader.events, [
    {
      type: 'TxInWallet',
      id: 'e1-1',
      data: '{"module":"wallet","tick":"1","type":"TxInWallet","data":{"n":1}}',
    },
    { type: 'Notice', id: 'e1-3', data: '{"module":"wallet","tick":"3","type":"Notice","data":{"n":3}}' },
  ]);
});

t.test('stream: data of several lines is the same JSON at the client', async (t) => {
  const { accounts, log, open } = start(t);
  const alice = await accounts.signUp();
  const client = await open(alice);
  log.append(alice.userId, '{\r\n  "n": 1.10,\n\r  "event": "id: 7"\n}', 'odd\nid: 9');
  await client.until(({ reader }) => reader.events.length === 1);
  const [event] = client.reader.events;
  t.equal(event?.id, 'e1-1');
  t.match(event?.data, /"n": 1\.10,/);
  t.same((JSON.parse(String(event?.data)) as { data: unknown }).data, { n: 1.1, event: 'id: 7' });
});

t.test('resume: the header, else the query; nothing twice, nothing of others', async (t) => {
  const { accounts, log, open } = start(t);
  const [alice, bob] = [await accounts.signUp(), await accounts.signUp()];
  for (let n = 1; n <= 300; n += 1) log.append([alice.userId, bob.userId, undefined][n % 3], json(n));
  const due = (after: number) =>
    Array.from({ length: 300 - after }, (_, i) => after + 1 + i).filter((n) => n % 3 !== 1);
  const byHeader = await open(alice, { headers: { 'Last-Event-ID': 'e1-10' } });
  await byHeader.until((client) => client.numbers().length === due(10).length);
  t.same(byHeader.numbers(), due(10));
  const byQuery = await open(alice, { path: '/auth/v1/events?last_event_id=e1-250' });
  await byQuery.until((client) => client.numbers().length === due(250).length);
  t.same(byQuery.numbers(), due(250));
  const both = await open(alice, {
    path: '/auth/v1/events?last_event_id=e1-1',
    headers: { 'Last-Event-ID': 'e1-299' },
  });
  await both.until((client) => client.numbers().length === due(299).length);
  t.same(both.numbers(), due(299), 'the header is newer than the address of the stream');
});

// covers P12
t.test('resume: an unknown, old, foreign or invalid position is a reset, then live', async (t) => {
  const { accounts, log, hub, open } = start(t);
  const alice = await accounts.signUp();
  for (let n = 1; n <= 20; n += 1) log.append(undefined, json(n));
  const first = await open(alice);
  await first.until(({ reader }) => reader.lastEventId !== '');
  log.trim(10);
  const places = [
    'e1-9',
    'e1-21',
    'e2-15',
    'garbage',
    '-1',
    'e1--1',
    'e1-1e3',
    'e1-99999999999999999',
    `e1-${'1'.repeat(3_000)}`,
    // uWS trims such bytes, so that nothing of them is left.
    'é',
    '😀',
    '   ',
    '',
    'é(',
  ];
  for (const place of places) {
    const client = await open(alice, { headers: { 'Last-Event-ID': place } });
    await client.until(({ reader }) => reader.events.length > 0);
    const [reset] = client.reader.events;
    t.same(
      reset,
      { type: 'reset', id: 'e1-20', data: '{"oldest":"e1-11","newest":"e1-20"}' },
      place.slice(0, 30),
    );
    client.close();
  }
  t.equal(hub.counters().resets, places.length);
  const live = await open(alice, { headers: { 'Last-Event-ID': 'nonsense' } });
  log.append(undefined, json(21));
  await live.until((client) => client.numbers().length === 1);
  t.same(live.numbers(), [21]);
  const edge = await open(alice, { headers: { 'Last-Event-ID': 'e1-10' } });
  await edge.until((client) => client.numbers().length === 11);
  t.same(
    edge.reader.events.map(({ type }) => type).filter((type) => type === 'reset'),
    [],
    'e1-10 misses nothing',
  );
  const huge = connectRaw(accounts.http.port);
  huge.send(
    requestText('GET', '/auth/v1/events', { ...cookie(alice.sid), 'Last-Event-ID': 'x'.repeat(40_000) }),
  );
  t.match(await huge.ended(), /^(HTTP\/1\.1 431|$)/, 'more than a head may hold is refused before any route');
});

// covers R59 R86
t.test('authority: no session 401, a foreign origin 403, an allowed one may read', async (t) => {
  const { ask, accounts, open } = start(t);
  const alice = await accounts.signUp();
  const bob = await accounts.signUp();
  for (const headers of [{}, { Cookie: 'sid=unknown' }, { Cookie: `sid=${alice.sid}; sid=${bob.sid}` }]) {
    const answer = await ask('GET', '/auth/v1/events', headers);
    t.equal(answer.status, 401);
    t.match(answer.body, /"code":1101/);
  }
  for (const extra of [
    { Origin: 'https://evil.example' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { Origin: 'null' },
  ]) {
    const answer = await ask('GET', '/auth/v1/events', { ...cookie(alice.sid), ...extra });
    t.equal(answer.status, 403, JSON.stringify(extra));
  }
  const own = await open(alice, {
    headers: { Origin: 'https://own.example', 'Sec-Fetch-Site': 'same-site' },
  });
  t.equal(own.status, 200);
  t.match(own.head, /access-control-allow-origin: https:\/\/own\.example/i);
  t.match(own.head, /access-control-allow-credentials: true/i);
});

// covers R86
t.test('authority: every way a session ends closes its streams before its answer', async (t) => {
  const { accounts, hub, open } = start(t);
  const ends: Record<string, (account: Account) => Promise<unknown>> = {
    logout: ({ sid }) => accounts.post('/auth/v1/logout', undefined, cookie(sid)),
    close_sessions: ({ sid }) => accounts.post('/auth/v1/close_sessions', undefined, cookie(sid)),
    block: ({ userId }) =>
      accounts.actors.system.ask(user, userId, {
        type: 'setBlocked',
        blocked: true,
        origin: { ip: '', userAgent: '' },
      }),
    'key removal': ({ sid, keyId }) => accounts.post('/auth/v1/keys/remove_key', { keyId }, cookie(sid)),
  };
  const bystander = await open(await accounts.signUp());
  for (const [name, end] of Object.entries(ends)) {
    const account = await accounts.signUp();
    const streams = [await open(account), await open(account)];
    await end(account);
    t.equal(hub.counters().streams, 1, `${name}: gone when the answer is there`);
    for (const stream of streams) {
      t.same(await stream.ended(), { reason: 'session' }, name);
      t.ok(stream.complete, 'a whole answer, not a cut one');
    }
  }
  t.notOk(bystander.closed || bystander.complete);
  t.equal(hub.counters().ended.session, 8);
});

t.test('authority: another session of the same user continues', async (t) => {
  const { accounts, log, open } = start(t);
  const alice = await accounts.signUp();
  const login = await accounts.login(alice.key);
  const other = { ...alice, sid: /^sid=([^;]*)/.exec(login.headers['set-cookie'] ?? '')?.[1] ?? '' };
  const [first, second] = [await open(alice), await open(other)];
  await accounts.post('/auth/v1/logout', undefined, cookie(alice.sid));
  await first.ended();
  log.append(alice.userId, json(1));
  await second.until((client) => client.numbers().length === 1);
  t.notOk(second.complete);
});

t.test('authority: an open stream does not extend a session, an expired one is closed', async (t) => {
  const { accounts } = start(t, { BrowserSessionIdleSeconds: 3_600 });
  const { sid, userId } = await accounts.signUp();
  const listed = await accounts.get('/auth/v1/sessions', cookie(sid));
  const [{ id = '' } = {}] = listed.result as { id?: string }[];
  const lives = () => isSessionAlive(accounts.actors.system, userId, id);
  t.ok(lives());
  t.notOk(isSessionAlive(accounts.actors.system, userId, '1'), 'a session that never was');
  accounts.actors.clock.nowMs += 3_500_000;
  t.ok(lives(), 'asked shortly before its time');
  accounts.actors.clock.nowMs += 110_000;
  t.notOk(lives(), 'which that did not put off');
});

// covers S57
t.test('limits: the oldest stream of a session is replaced, an address and the node have caps', async (t) => {
  const { accounts, hub, open } = start(t, {
    SseStreamsPerSession: 3,
    SseStreamsPerAddress: 5,
    SseStreamsMax: 16,
  });
  const alice = await accounts.signUp();
  const streams = [await open(alice), await open(alice), await open(alice), await open(alice)];
  t.same(await streams[0]?.ended(), { reason: 'evicted' });
  t.ok(
    (streams[0]?.reader.retryMs ?? 0) >= 30_000,
    'an EventSource that was pushed out does not push back at once',
  );
  const bob = await accounts.signUp();
  await open(bob);
  await open(bob);
  t.equal(hub.counters().streams, 5);
  const late = await open(bob);
  t.equal(late.status, 200, 'anything else would stop an EventSource for good');
  await late.ended();
  t.ok(late.reader.retryMs >= 5_000 && late.reader.retryMs <= 20_000, `${late.reader.retryMs}`);
  t.same(late.reader.events, []);
  accounts.settings.set('SseStreamsPerAddress', 100);
  accounts.settings.set('SseStreamsMax', 6);
  const carol = await accounts.signUp();
  await open(carol);
  const over = await open(await accounts.signUp());
  await over.ended();
  t.equal(hub.counters().refused.address, 1);
  t.equal(hub.counters().refused.node, 1);
  accounts.settings.set('SseStreamsMax', 12);
  await open(carol);
  await open(carol);
  const fourth = await open(await accounts.signUp());
  t.equal(hub.counters().streams, 9);
  fourth.close();
  accounts.settings.set('SseStreamsPerSession', 100);
  const greedy = await open(carol);
  await greedy.ended();
  t.equal(hub.counters().refused.user, 1, 'one user has a quarter');
});

t.test('limits: a client that reconnects in a loop gets a longer retry delay', async (t) => {
  const { accounts, hub, port } = start(t);
  const alice = await accounts.signUp();
  let told: EventClient | undefined;
  for (let connects = 0; connects < 100 && told === undefined; connects += 1) {
    const client = await openEvents(port, { sid: alice.sid });
    if (client.reader.retryMs !== 3_000) told = client;
    client.close();
  }
  t.ok((told?.reader.retryMs ?? 0) >= 5_000);
  t.ok(hub.counters().opened >= 40);
});

t.test('front: HEAD is the head alone, HTTP/1.0 is refused, another method has no route', async (t) => {
  const { ask, accounts, hub, port } = start(t);
  const { sid } = await accounts.signUp();
  const connection = connectRaw(port);
  connection.send(requestText('HEAD', '/auth/v1/events', cookie(sid)));
  const head = await connection.answer(true);
  t.match(head, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  t.equal(
    (await connection.ask(requestText('GET', '/auth/v1/sessions', cookie(sid)))).status,
    200,
    'the connection is still in step',
  );
  connection.close();
  t.equal(hub.counters().streams, 0);
  const old = connectRaw(port);
  old.send(`GET /auth/v1/events HTTP/1.0\r\nHost: localhost\r\nCookie: sid=${sid}\r\n\r\n`);
  t.match(await old.ended(), /^HTTP\/1\.1 505/);
  t.equal((await ask('DELETE', '/auth/v1/events', cookie(sid))).status, 405);
});

t.test('stop: streams end with a bye event, a late one gets a retry delay', async (t) => {
  const { accounts, hub, open, port } = start(t);
  const alice = await accounts.signUp();
  const streams = [await open(alice), await open(alice)];
  const idle = connectRaw(port);
  await idle.ask(requestText('GET', '/auth/v1/sessions', cookie(alice.sid)));
  const drained = accounts.http.pipeline.drain(1_000);
  await hub.drain();
  t.equal(await drained, 0, 'open streams are no requests in flight');
  for (const stream of streams) {
    t.same(await stream.ended(), { reason: 'drain' });
    t.ok(stream.reader.retryMs >= 1_000 && stream.reader.retryMs <= 5_000);
  }
  const late = await idle.ask(requestText('GET', '/auth/v1/events', cookie(alice.sid)));
  t.equal(late.status, 200);
  t.match(late.body, /^retry: [0-9]+\n/);
  idle.close();
});

// covers S10
t.test(
  'slow readers: one that pauses gets everything, one that never reads is closed, others feel nothing',
  async (t) => {
    const { accounts, log, hub, open } = start(t);
    const alice = await accounts.signUp();
    const healthy = await open(alice);
    const pausing = await open(alice);
    const dead = await open(alice);
    pausing.socket.pause();
    dead.socket.pause();
    const padding = 'x'.repeat(4_000);
    const rssBefore = process.memoryUsage.rss();
    let sent = 0;
    // Events are sent until the kernel takes no more for those that do not read.
    while (hub.counters().blocked < 2 && sent < 20_000) {
      for (let burst = 0; burst < 50; burst += 1) {
        sent += 1;
        log.append(undefined, JSON.stringify({ n: sent, padding }));
      }
      await healthy.until((client) => client.numbers().length === sent);
    }
    t.equal(hub.counters().blocked, 2);
    pausing.socket.resume();
    await pausing.until((client) => client.numbers().length === sent);
    t.same(
      pausing.numbers(),
      Array.from({ length: sent }, (_, index) => index + 1),
      'in order, nothing twice',
    );
    t.ok(process.memoryUsage.rss() - rssBefore < 400 * 1024 * 1024);
    // The transport closes it.
    while (hub.counters().streams > 2) await new Promise((resolve) => setTimeout(resolve, 50));
    t.equal(hub.counters().stall + hub.counters().lag, 1);
    log.append(undefined, json(sent + 1));
    await healthy.until((client) => client.numbers().length === sent + 1);
    await pausing.until((client) => client.numbers().length === sent + 1);
  },
);
