/** Events as modules bring them: pushed to the internal listener, and polled. */
import http from 'node:http';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { listenFor } from '../../../kit/http.ts';
import { EventInbox, type Intake } from '../../../src/actors/events/inbox.ts';
import { openEventLog } from '../../../src/actors/events/log.ts';
import { OWNS_ALL, type Ownership } from '../../../src/actors/runtime/ownership.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { IncomingEvent } from '../../../src/domain/events/intake.ts';
import { createModuleClient } from '../../../src/io/modules/client.ts';
import {
  EAGER_POLLS,
  EventPoller,
  PAGE_EVENTS,
  POLL_BACKOFF_MAX_MS,
  POLL_EAGER_MS,
  POLL_MS,
} from '../../../src/io/modules/event-poller.ts';
import { createEventPush, EVENTS_BODY_MAX_BYTES } from '../../../src/io/modules/event-push.ts';
import { createModuleKeys } from '../../../src/io/modules/module-keys.ts';
import { createMetrics } from '../../../src/io/observability/metrics.ts';
import { createInternalRoutes } from '../../../src/io/routes/internal.ts';
import { createTestActors } from '../../support/actors/actors.ts';
import { freshBounds } from '../../support/actors/bounds.ts';
import { startHttp } from '../../support/http.ts';

const WALLET_KEY = 'wallet-key-0123456789';
const CHAT_KEY = 'chat-key-0123456789ab';

/** Takes everything, or refuses as told. */
function fakeInbox() {
  const taken: IncomingEvent[] = [];
  let refusal: GatewayError | undefined;
  return {
    taken,
    refuse: (error: GatewayError | undefined) => {
      refusal = error;
    },
    async accept(events: readonly IncomingEvent[]): Promise<Intake> {
      if (refusal !== undefined) throw refusal;
      taken.push(...events);
      return { accepted: events.length, duplicates: 0 };
    },
  };
}

async function startIntake(t: Test) {
  const inbox = fakeInbox();
  const keys = new Map([
    ['wallet', WALLET_KEY],
    ['chat', CHAT_KEY],
    ['core', undefined],
  ]);
  const intake = createEventPush(inbox, createModuleKeys(keys));
  const noRemovals = { remove: () => Promise.reject(new Error('not asked')) };
  const facts = () => {
    throw new Error('not asked');
  };
  const parts = { metrics: createMetrics(), health: facts, events: intake, removals: noRemovals };
  const fixture = closeAfter(t, startHttp({ routes: createInternalRoutes(parts) }));
  const send = (key: string | undefined, body: string | Buffer) =>
    fetch(`${fixture.url}/internal/v1/events`, {
      method: 'POST',
      headers: key === undefined ? {} : { 'x-module-key': key },
      body,
    });
  const push = async (key: string | undefined, body: string | Buffer) => {
    const response = await send(key, body);
    const answer = (await response.json()) as { result?: Intake; error?: { code: number; detail?: string } };
    return { status: response.status, ...answer };
  };
  return { inbox, intake, send, push };
}

const event = (module: string, tick: number | string) =>
  `{"module":"${module}","tick":"${tick}","type":"TxInWallet","crmId":"7","data":{"id":"${tick}"}}`;
const batch = (...events: string[]) => `{"events":[${events.join(',')}]}`;

// covers R6 R87
t.test('POST events: accepts a batch of the module of its key', async (t) => {
  const { inbox, push } = await startIntake(t);
  const answer = await push(WALLET_KEY, batch(event('wallet', 1), event('wallet', 2)));
  t.same(answer, { status: 200, result: { accepted: 2, duplicates: 0 } });
  const ticks = inbox.taken.map(({ tick }) => tick);
  t.same(ticks, ['1', '2']);
  t.same(await push(CHAT_KEY, batch()), { status: 200, result: { accepted: 0, duplicates: 0 } });
});

// covers R6
t.test('POST events: 401 without a key, with a wrong one, and with that of another module', async (t) => {
  const { inbox, intake, push } = await startIntake(t);
  for (const key of [undefined, '', 'wrong', `${WALLET_KEY}x`, WALLET_KEY.slice(1), 'undefined']) {
    t.match(await push(key, batch(event('wallet', 1))), { status: 401, error: { code: 1103 } }, String(key));
  }
  const foreign = await push(WALLET_KEY, batch(event('wallet', 1), event('chat', 2)));
  const detail = 'events.1.module: X-Module-Key is the key of another module';
  t.match(foreign, { status: 401, error: { detail } });
  t.match(await push(WALLET_KEY, batch(event('core', 1))), { status: 401 }, 'a module without a key');
  t.match(await push(WALLET_KEY, batch(event('nope', 1))), { status: 400, error: { code: 1001 } });
  t.same(inbox.taken, [], 'nothing half accepted');
  t.same(intake.counters(), { refusedKey: 8, refusedInput: 1 });
});

// covers R6
t.test('POST events: refuses invalid and oversized batches', async (t) => {
  const { inbox, push } = await startIntake(t);
  for (const body of ['', 'x', '{', '[]', '{"events":1}', Buffer.from([0x7b, 0xff, 0x7d])]) {
    t.match(await push(WALLET_KEY, body), { status: 400, error: { code: 1001 } }, String(body));
  }
  const deep = `{"events":[{"data":${'['.repeat(70)}${']'.repeat(70)}}]}`;
  t.match(await push(WALLET_KEY, deep), { status: 400, error: { detail: 'body: nested over 64 levels' } });
  const megabyte = `{"module":"wallet","tick":1,"type":"x","data":{"a":"${'x'.repeat(1_000_000)}"}}`;
  const large = await push(WALLET_KEY, batch(event('wallet', 1), megabyte));
  t.match(large, { status: 413, error: { code: 1006, detail: 'events.1: at most 524288 characters' } });
  t.match(await push(WALLET_KEY, ' '.repeat(EVENTS_BODY_MAX_BYTES + 1)), { status: 413 });
  const many = Array.from({ length: 1_001 }, (_, index) => event('wallet', index));
  t.match(await push(WALLET_KEY, batch(...many)), { status: 400, error: { detail: 'events: at most 1000' } });
  t.same(inbox.taken, []);
  inbox.refuse(new GatewayError('StorageFull'));
  t.match(await push(WALLET_KEY, batch(event('wallet', 1))), { status: 503, error: { code: 1013 } });
});

t.test('POST events: reserved names in data pass like any other', async (t) => {
  const { inbox, push } = await startIntake(t);
  const text = `{"module":"wallet","tick":1,"type":"x","data":{"__proto__":{"a":1.10},"constructor":2}}`;
  t.match(await push(WALLET_KEY, batch(text)), { status: 200 });
  t.match(inbox.taken[0]?.jsonText, '"data":{"__proto__":{"a":1.10},"constructor":2}}');
});

interface Poll {
  readonly after: string;
  readonly limit: number;
}

/** A module on node:http; the test gives the answer to each poll. */
async function startModule(t: Test, answer: (poll: Poll, response: http.ServerResponse) => void) {
  const polls: Poll[] = [];
  const server = http.createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://module');
    const poll = { after: url.searchParams.get('after') ?? '', limit: Number(url.searchParams.get('limit')) };
    if (url.pathname !== '/base/events') response.writeHead(404);
    polls.push(poll);
    answer(poll, response);
  });
  const { url } = await listenFor(t, server);
  return { polls, url: `${url}/base/` };
}

function startFeed(
  t: Test,
  url: string,
  actors = createTestActors({ kinds: [] }),
  real?: EventInbox,
  ownership: Ownership = OWNS_ALL,
) {
  const inbox = fakeInbox();
  const cursors: unknown[] = [];
  const modules = createModuleClient({ clock: actors.clock.read, bounds: freshBounds() });
  const waits: { delayMs: number; run: () => void }[] = [];
  let waiting: (() => void) | undefined;
  const feed = new EventPoller({
    module: 'wallet',
    url,
    project: 'test',
    modules,
    inbox: {
      async accept(events, alongside = []) {
        const intake = await (real === undefined ? inbox.accept(events) : real.accept(events, alongside));
        cursors.push(...alongside);
        return intake;
      },
    },
    administration: actors.system.administration,
    schedule: {
      timer: (delayMs, run) => {
        waits.push({ delayMs, run });
        waiting?.();
        return () => {};
      },
    },
    newRequestId: () => 'request',
    random: () => 0.5,
    log: { write: () => {} },
    ownership,
  });
  t.teardown(async () => {
    await feed.stop();
    await modules.close();
  });
  /** Lets the next poll run; the wait that it asked for. */
  const turn = async (): Promise<number | undefined> => {
    const next = waits.shift();
    const done = new Promise<void>((resolve) => {
      waiting = resolve;
    });
    next?.run();
    await done;
    return waits[0]?.delayMs;
  };
  return { feed, inbox, cursors, turn };
}

// covers R87
t.test('event poller: reads page after page, the cursor goes with the events', async (t) => {
  const ticks = Array.from({ length: PAGE_EVENTS + 2 }, (_, index) => index + 1);
  const { polls, url } = await startModule(t, ({ after, limit }, response) => {
    const page = ticks.filter((tick) => tick > Number(after)).slice(0, limit);
    response.end(`{"result":${batch(...page.map((tick) => event('wallet', tick)))}}`);
  });
  const { feed, inbox, cursors, turn } = startFeed(t, url);
  t.equal(await turn(), 0, 'a full page: there may be more');
  t.equal(await turn(), POLL_EAGER_MS);
  t.equal(await turn(), POLL_EAGER_MS, 'nothing new, but there may be soon');
  t.same(
    polls.map(({ after }) => Number(after)),
    [0, PAGE_EVENTS, PAGE_EVENTS + 2],
  );
  t.equal(inbox.taken.length, PAGE_EVENTS + 2);
  t.equal(feed.cursor, String(PAGE_EVENTS + 2));
  const pauses: unknown[] = [];
  for (let quiet = 2; quiet < EAGER_POLLS; quiet += 1) pauses.push(await turn());
  t.same(pauses, new Array(EAGER_POLLS - 2).fill(POLL_EAGER_MS));
  t.equal(await turn(), POLL_MS, 'quiet for a while');
  t.match(cursors, [
    { op: 'meta', key: 'part:eventFeed:wallet', row: String(PAGE_EVENTS) },
    { op: 'meta', row: String(PAGE_EVENTS + 2) },
  ]);
});

t.test('event poller: only the owner polls, from the cursor that the owner before it stored', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const { polls, url } = await startModule(t, ({ after }, response) => {
    response.end(`{"result":${batch(event('wallet', Number(after) + 1))}}`);
  });
  let isOwner = true;
  const owns = (kind: string, id: string) => isOwner && kind === 'eventLog' && id === 'all';
  const { feed, turn } = startFeed(t, url, actors, undefined, { owns });
  await turn();
  isOwner = false;
  t.same([await turn(), await turn()], [POLL_MS, POLL_MS]);
  t.equal(polls.length, 1);
  await actors.system.administration.metaPut('eventFeed:wallet', '41');
  isOwner = true;
  await turn();
  t.equal(polls.at(-1)?.after, '41');
  t.equal(feed.cursor, '42');
});

t.test('event poller: after a crash it continues from the last page on disk', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const openInbox = async () => {
    const { administration } = actors.system;
    const schedule = { immediate: (run: () => void) => setImmediate(run), timer: actors.clock.timer };
    const world = { administration, settings: actors.settings, clock: actors.clock.read, schedule };
    const log = await openEventLog({ ...world, newEpoch: () => 'epoch' });
    return { log, inbox: new EventInbox(world) };
  };
  const { polls, url } = await startModule(t, ({ after }, response) => {
    response.end(
      `{"result":${batch(event('wallet', Number(after) + 1), event('wallet', Number(after) + 2))}}`,
    );
  });
  const first = startFeed(t, url, actors, (await openInbox()).inbox);
  await first.turn();
  await first.turn();
  t.equal(first.feed.cursor, '4');
  await first.feed.stop();
  await actors.restart();
  const { log, inbox } = await openInbox();
  const second = startFeed(t, url, actors, inbox);
  t.equal(second.feed.cursor, '4');
  await second.turn();
  t.equal(polls.at(-1)?.after, '4');
  await actors.advance(600);
  t.same(
    log.page(0, 10).map(({ tick }) => tick),
    ['1', '2', '3', '4', '5', '6'],
  );
});

t.test('event poller: backs off while a module fails, then continues at its cursor', async (t) => {
  let broken: string | number | undefined = 500;
  const { polls, url } = await startModule(t, (_, response) => {
    if (broken === undefined) response.end(`{"result":${batch(event('wallet', 9))}}`);
    else if (typeof broken === 'number') response.writeHead(broken).end('{}');
    else response.end(broken);
  });
  const { feed, inbox, turn } = startFeed(t, url);
  t.equal(await turn(), 2 * POLL_MS);
  for (const answer of [
    'no json',
    '{"result":{}}',
    batch(event('chat', 1)),
    batch(event('wallet', 0)),
    batch(event('wallet', 5), `{"module":"wallet","tick":6,"type":"x","data":{"a":"${'x'.repeat(70_000)}"}}`),
  ]) {
    broken = answer;
    await turn();
  }
  t.same(inbox.taken, [], 'a page that cannot be taken is not taken in part');
  t.equal(feed.cursor, '0');
  t.same(feed.counters(), { polls: 6, pollFailures: 6, pagesRefused: 5, failing: 6 });
  t.equal(await turn(), POLL_BACKOFF_MAX_MS);
  broken = undefined;
  inbox.refuse(new GatewayError('StorageFull'));
  t.equal(await turn(), POLL_BACKOFF_MAX_MS, 'the journal is full');
  t.equal(feed.cursor, '0');
  inbox.refuse(undefined);
  t.equal(await turn(), POLL_EAGER_MS);
  t.equal(feed.cursor, '9');
  t.equal(feed.counters().failing, 0);
  t.ok(polls.every(({ after }) => after === '0'));
});

t.test('event poller: asks for shorter pages while the answers are too large', async (t) => {
  const filler = 'x'.repeat(60_000);
  const large = (tick: number) =>
    `{"module":"wallet","tick":${tick},"type":"x","data":{"id":${tick},"filler":"${filler}"}}`;
  const { polls, url } = await startModule(t, ({ after, limit }, response) => {
    const ticks = Array.from({ length: 150 }, (_, index) => index + 1).filter((tick) => tick > Number(after));
    response.end(`{"result":${batch(...ticks.slice(0, limit).map(large))}}`);
  });
  const { inbox, feed, turn } = startFeed(t, url);
  while (inbox.taken.length < 150) await turn();
  t.same(
    polls.slice(0, 5).map(({ limit }) => limit),
    [500, 250, 125, 62, 70],
  );
  t.equal(feed.counters().pollFailures, 0, 'that is no failure');
});

t.test(
  'event poller: a module that is down is asked rarely, and stopping does not wait for it',
  async (t) => {
    const { url } = await startModule(t, () => {});
    const { feed, turn } = startFeed(t, url);
    const hanging = turn();
    await feed.stop();
    t.equal(feed.counters().pollFailures, 0);
    void hanging;
    const down = startFeed(t, 'http://127.0.0.1:1');
    t.equal(await down.turn(), 2 * POLL_MS);
    for (let poll = 0; poll < 9; poll += 1) await down.turn();
    t.match(down.feed.counters(), { pollFailures: 10, failing: 10 });
  },
);
