/** The log of events and its inbox over the runtime: order, what is known, what a crash leaves, bounds, retention. */

import t from 'tap';
import { EventInbox, MODULE_SHARE, WAITING_MAX } from '../../../src/actors/events/inbox.ts';
import { type JournalEventLog, openEventLog } from '../../../src/actors/events/log.ts';
import { NEWEST_EVENTS_MAX, NewestEvents } from '../../../src/actors/events/newest-events.ts';
import { EVENT_EPOCH_KEY } from '../../../src/actors/runtime/journal/port.ts';
import { OWNS_ALL, type Ownership } from '../../../src/actors/runtime/ownership.ts';
import { missedAfter, type StoredEvent } from '../../../src/domain/events/events.ts';
import { type IncomingEvent, readEvents } from '../../../src/domain/events/intake.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { DAY_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { createTestActors, type TestActors } from '../../support/actors/actors.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';
import { rejectsWith } from '../../support/rejections.ts';

const WINDOW_MS = 500;

interface Server {
  readonly log: JournalEventLog;
  readonly inbox: EventInbox;
}

let epochs = 0;

async function open(
  actors: TestActors,
  bytesMax?: number,
  ownership: Ownership = OWNS_ALL,
  { logId, admits }: { readonly logId?: string | undefined; readonly admits?: () => boolean } = {},
): Promise<Server> {
  const { administration } = actors.system;
  const world = {
    administration,
    settings: actors.settings,
    clock: actors.clock.read,
    schedule: { immediate: (run: () => void) => setImmediate(run), timer: actors.clock.timer },
    ownership,
  };
  epochs += 1;
  const log = await openEventLog({
    ...world,
    newEpoch: () => `epoch${epochs}`,
    logId,
    ...(bytesMax === undefined ? {} : { bytesMax }),
  });
  return { log, inbox: new EventInbox({ ...world, admits }) };
}

function events(...ticks: (number | string)[]): IncomingEvent[] {
  return ofModule('wallet', ...ticks);
}

function ofModule(module: string, ...ticks: (number | string)[]): IncomingEvent[] {
  const texts = ticks.map(
    (tick) =>
      `{"module":"${module}","tick":"${tick}","type":"TxInWallet","crmId":"7","data":{"id":"${tick}"}}`,
  );
  return [...readEvents(`{"events":[${texts.join(',')}]}`, 100_000, String)];
}

const ticksOf = (log: JournalEventLog, after = 0) => log.page(after, 1_000).map(({ tick }) => tick);

t.test('event log: events come out in the order of their ticks once the window is over', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const { log, inbox } = await open(actors);
  let heard = 0;
  const stop = log.subscribe(() => {
    heard += 1;
    t.equal(log.page(0, 10).length, log.newest, 'what is announced is there');
  });
  await inbox.accept(events(5, 3));
  await actors.advance(300);
  await inbox.accept(ofModule('chat', 4, 9));
  t.same(ticksOf(log), [], 'not yet');
  await actors.advance(WINDOW_MS - 300 + 10);
  t.same(ticksOf(log), ['3', '4', '5'], 'the later one waits for its own window');
  await actors.advance(WINDOW_MS);
  t.same(ticksOf(log), ['3', '4', '5', '9']);
  t.same([log.oldest, log.newest], [1, 4]);
  t.equal(heard, 2);
  stop();
  await log.publish({ type: 'webhook.failing', userId: '7', data: { appId: '1' } });
  t.equal(heard, 2, 'no longer listening');
  const own = log.page(4, 10);
  t.match(own, [{ sequence: 5, module: 'gateway', type: 'webhook.failing', userId: '7' }]);
  t.same(JSON.parse(own[0]?.jsonText ?? ''), {
    module: 'gateway',
    tick: own[0]?.tick,
    type: 'webhook.failing',
    data: { appId: '1' },
  });
  t.same(
    log.page(0, 2).map(({ sequence }) => sequence),
    [1, 2],
    'pages are bounded',
  );
});

t.test(
  'event log: new events are decoded once for all readers, and read from disk as the same',
  async (t) => {
    const actors = createTestActors({
      kinds: [],
      settings: new LiveSettings({ EventReorderMilliseconds: 0 }),
    });
    const { log, inbox } = await open(actors);
    for (const first of [1, 11, 21])
      await inbox.accept(events(...Array.from({ length: 10 }, (_, at) => first + at)));
    await actors.advance(10);
    const [event] = log.page(4, 1);
    t.equal(log.page(4, 3)[0], event, 'one object');
    const { log: reader } = await open(actors);
    t.not(reader.page(4, 1)[0], event, 'this one has only the disk');
    for (const after of [0, 4, 29, 30, 31])
      for (const limit of [1, 7, 100]) t.same(log.page(after, limit), reader.page(after, limit), `${after}`);
  },
);

t.test('newest events: bounds, gaps and what is on disk alone', async (t) => {
  const event = (sequence: number): StoredEvent => ({
    sequence,
    module: 'wallet',
    tick: '1',
    type: 'TxInWallet',
    userId: undefined,
    appId: undefined,
    currency: undefined,
    netType: undefined,
    jsonText: '{}',
    acceptedMs: 0,
  });
  const row = createTestActors({ kinds: [] }).system.administration.journal.pack(0);
  const sequences = (newest: NewestEvents, after: number, limit = 10) =>
    newest.page(after, limit)?.map(({ sequence }) => sequence);
  const newest = new NewestEvents(event, 100);
  t.equal(sequences(newest, 0), undefined, 'empty');
  for (const sequence of [7, 8, 9]) newest.add(sequence, row, 30);
  t.same(sequences(newest, 6), [7, 8, 9]);
  t.same(sequences(newest, 6, 2), [7, 8]);
  t.same(sequences(newest, 9), []);
  t.equal(sequences(newest, 5), undefined, 'one of them was before its time');
  newest.add(10, row, 30);
  t.equal(sequences(newest, 6), undefined, 'the oldest gave its bytes');
  t.same(sequences(newest, 7), [8, 9, 10]);
  newest.add(20, row, 30);
  t.equal(sequences(newest, 9), undefined, 'a gap');
  t.same(sequences(newest, 19), [20]);
  newest.add(21, row, 1_000);
  t.equal(sequences(newest, 20), undefined, 'larger than the bound');

  const many = new NewestEvents(event);
  for (let sequence = 1; sequence <= NEWEST_EVENTS_MAX + 1; sequence += 1) many.add(sequence, row, 1);
  t.equal(sequences(many, 0), undefined);
  t.same(sequences(many, 1, 2), [2, 3]);
  t.same(sequences(many, NEWEST_EVENTS_MAX), [NEWEST_EVENTS_MAX + 1]);
});

t.test(
  'event log: of events with one identity the first one is kept, also while it is written',
  async (t) => {
    const actors = createTestActors({ kinds: [] });
    const { log, inbox } = await open(actors);
    const event = (sum: number) =>
      `{"module":"wallet","tick":"5","type":"TxInWallet","crmId":"7","data":{"id":"1","sum":${sum}}}`;
    const read = (...sums: number[]) => [
      ...readEvents(`{"events":[${sums.map(event).join(',')}]}`, 10, String),
    ];
    t.same(await Promise.all([inbox.accept(read(1, 2)), inbox.accept(read(3))]), [
      { accepted: 1, duplicates: 1 },
      { accepted: 0, duplicates: 1 },
    ]);
    await actors.advance(WINDOW_MS + 10);
    t.same(
      log.page(0, 10).map(({ jsonText }) => JSON.parse(jsonText)),
      [JSON.parse(event(1).replace(',"crmId":"7"', ''))],
    );
    t.equal(inbox.counters().waitingBytes, 0);
  },
);

t.test('event log: with EventReorderMilliseconds 0 events come out in the order of arrival', async (t) => {
  const actors = createTestActors({ kinds: [], settings: new LiveSettings({ EventReorderMilliseconds: 0 }) });
  const { log, inbox } = await open(actors);
  await inbox.accept(events(5));
  await actors.advance(50);
  t.same(ticksOf(log), ['5']);
  await inbox.accept(ofModule('chat', 4));
  await actors.advance(50);
  t.same(ticksOf(log), ['5', '4']);
});

t.test(
  'event log: an older tick after the window comes next and is counted, a far one delays no other',
  async (t) => {
    const actors = createTestActors({ kinds: [] });
    const { log, inbox } = await open(actors);
    await inbox.accept(events(10));
    await actors.advance(WINDOW_MS + 10);
    await inbox.accept(ofModule('core', '9223372036854775807'));
    await inbox.accept(ofModule('chat', 6));
    await inbox.accept(events(8));
    await actors.advance(WINDOW_MS + 10);
    t.same(ticksOf(log), ['10', '6', '8', '9223372036854775807']);
    t.equal(inbox.counters().late, 1, 'late by the ticks of its own module');
    await inbox.accept(ofModule('chat', 7));
    await actors.advance(WINDOW_MS + 10);
    t.same(ticksOf(log, 4), ['7']);
    t.equal(inbox.counters().late, 1);
  },
);

// covers R87
t.test(
  'event log: a known event is stored once, and its answer waits for the disk like the first',
  async (t) => {
    const actors = createTestActors({ kinds: [] });
    const { log, inbox } = await open(actors);
    const [first, second] = await Promise.all([inbox.accept(events(1, 2, 1)), inbox.accept(events(2))]);
    t.same(first, { accepted: 2, duplicates: 1 });
    t.same(second, { accepted: 0, duplicates: 1 });
    t.equal(actors.journal.events.waiting(0, 10).length, 2, 'on disk when it was answered');
    await actors.advance(WINDOW_MS + 10);
    t.same(await inbox.accept(events(1)), { accepted: 0, duplicates: 1 }, 'known from the log');
    await actors.advance(WINDOW_MS + 10);
    t.same(ticksOf(log), ['1', '2']);
  },
);

t.test(
  'event log: what was accepted survives a crash, no sequence number is used twice, the epoch stays',
  async (t) => {
    const actors = createTestActors({ kinds: [] });
    const first = await open(actors);
    await first.inbox.accept(events(1));
    await actors.advance(WINDOW_MS + 10);
    await first.inbox.accept(events(3, 2));
    first.inbox.stop();
    first.log.stop();
    await actors.restart();
    const second = await open(actors);
    t.equal(second.log.epoch, first.log.epoch);
    t.same(ticksOf(second.log), ['1']);
    t.same(await second.inbox.accept(events(2)), { accepted: 0, duplicates: 1 }, 'known while it waits');
    await actors.advance(WINDOW_MS + 10);
    t.same(
      second.log.page(0, 10).map(({ sequence, tick }) => [sequence, tick]),
      [
        [1, '1'],
        [2, '2'],
        [3, '3'],
      ],
    );
  },
);

t.test('event log: without an epoch, as in a restored copy, it begins another one', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const first = await open(actors);
  const removed = commitRows(actors.journal, [{ op: 'meta', key: EVENT_EPOCH_KEY, row: undefined }]);
  await actors.settle();
  await removed;
  const second = await open(actors);
  t.not(second.log.epoch, first.log.epoch);
  t.equal(actors.journal.meta(EVENT_EPOCH_KEY), second.log.epoch);
});

// covers C18
t.test(
  'event log: a log of a cluster that was restored or replaced begins another one, an import none',
  async (t) => {
    const actors = createTestActors({ kinds: [] });
    const epochOf = async (logId?: string) => (await open(actors, undefined, OWNS_ALL, { logId })).log.epoch;
    const alone = await epochOf();
    t.equal(await epochOf('first'), alone, 'imported');
    t.equal(await epochOf('first'), alone);
    const restored = await epochOf('second');
    t.not(restored, alone);
    t.equal(await epochOf('second'), restored, 'the next node');
    t.equal(await epochOf(), restored, 'exported without a copy');
  },
);

t.test('event log: refuses as a whole when full, when overloaded, and when stopped', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const { log, inbox } = await open(actors);
  actors.journal.setFull(true);
  await rejectsWith(t, inbox.accept(events(1)), 'StorageFull');
  await rejectsWith(t, log.publish({ type: 'x', userId: '7', data: {} }), 'StorageFull');
  actors.journal.setFull(false);
  const share = WAITING_MAX * MODULE_SHARE;
  const ticks = Array.from({ length: share }, (_, index) => index);
  await inbox.accept(events(...ticks.slice(1)));
  await rejectsWith(t, inbox.accept(events('900000', '900001')), 'Overloaded');
  t.equal(actors.journal.events.knows(events('900000')[0]?.identity ?? ''), false, 'nothing half accepted');
  t.same(await inbox.accept(ofModule('chat', 1)), { accepted: 1, duplicates: 0 }, 'room for others');
  await rejectsWith(t, inbox.accept([...ofModule('chat', 2), ...events('900000', '900001')]), 'Overloaded');
  t.same(inbox.counters(), {
    accepted: share,
    duplicates: 0,
    late: 0,
    overloaded: 2,
    storageFull: 1,
    waiting: share,
    waitingBytes: share * 64,
  });
  await inbox.accept(ofModule('chat', ...ticks.slice(2)));
  await inbox.accept(ofModule('core', 1, 2));
  await rejectsWith(t, inbox.accept(ofModule('core', 3)), 'Overloaded');
  await actors.advance(2 * SECOND_MS);
  t.equal(log.newest, WAITING_MAX, 'all of them went on');
  t.match(inbox.counters(), { waiting: 0, waitingBytes: 0 });
  inbox.stop();
  log.stop();
  await rejectsWith(t, inbox.accept(events(1)), 'Stopping');
  await rejectsWith(t, log.publish({ type: 'x', userId: '7', data: {} }), 'Stopping');
});

t.test(
  'event log: keeps its number and its days, the newest always, and forgets what it removed',
  async (t) => {
    const settings = new LiveSettings({ EventRowsMax: 1_000 });
    const actors = createTestActors({ kinds: [], settings });
    const { log, inbox } = await open(actors);
    await inbox.accept(events(...Array.from({ length: 2_600 }, (_, index) => index + 1)));
    await actors.advance(3 * SECOND_MS);
    t.same([log.oldest, log.newest], [1_601, 2_600]);
    t.equal(missedAfter(log, 1_000), 600);
    t.equal(missedAfter(log, 1_600), 0);
    t.equal(log.page(0, 5)[0]?.sequence, 1_601);
    t.same(await inbox.accept(events(1, 1_601)), { accepted: 1, duplicates: 1 });
    actors.clock.nowMs += 7 * DAY_MS;
    await actors.advance(SECOND_MS);
    t.same([log.oldest, log.newest], [2_601, 2_601], 'the newest stays');
    t.equal(log.counters().trimmed, 2_600);
  },
);

t.test('event log: the oldest go before large events fill the journal', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const { log, inbox } = await open(actors, 600_000);
  const filler = 'x'.repeat(1_000);
  const texts = Array.from(
    { length: 900 },
    (_, tick) => `{"module":"wallet","tick":${tick},"type":"x","data":{"id":${tick},"filler":"${filler}"}}`,
  );
  await inbox.accept([...readEvents(`{"events":[${texts.join(',')}]}`, 1_000, String)]);
  await actors.advance(3 * SECOND_MS);
  t.ok(log.counters().sizeBytes <= 600_000, `${log.counters().sizeBytes} bytes`);
  t.equal(log.oldest, 501, 'a slice');
  t.equal(log.newest, 900);
});

/** Says what the test wants of the events, and is no owner of anything else. */
function eventsOwner(isOwner: boolean) {
  const state = { isOwner };
  const owns = (kind: string, id: string) => state.isOwner && kind === 'eventLog' && id === 'all';
  return { state, ownership: { owns } };
}

// covers C18
t.test('event log: only its owner removes events', async (t) => {
  const settings = new LiveSettings({ EventRowsMax: 1_000 });
  const actors = createTestActors({ kinds: [], settings });
  const { state, ownership } = eventsOwner(true);
  const { log, inbox } = await open(actors, undefined, ownership);
  await inbox.accept(events(...Array.from({ length: 1_100 }, (_, tick) => tick + 1)));
  state.isOwner = false;
  await actors.advance(10 * SECOND_MS);
  t.equal(log.counters().rows, 1_100);
  state.isOwner = true;
  await actors.advance(10 * SECOND_MS);
  t.equal(log.counters().rows, 1_000);
});

// covers C18
t.test('event inbox: a node that is not the owner accepts events and releases none', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const first = eventsOwner(true);
  const one = await open(actors, undefined, first.ownership);
  const second = eventsOwner(false);
  const other = await open(actors, undefined, second.ownership);
  t.same(await other.inbox.accept(events(3)), { accepted: 1, duplicates: 0 });
  first.state.isOwner = false;
  one.inbox.ownershipChanged();
  t.same(await one.inbox.accept(events(3, 2)), { accepted: 1, duplicates: 1 });
  for (const { inbox } of [one, other]) t.match(inbox.counters(), { waiting: 2, waitingBytes: 128 });
  await actors.advance(10 * WINDOW_MS);
  t.same([ticksOf(one.log), ticksOf(other.log)], [[], []], 'they wait for the next owner');
  second.state.isOwner = true;
  other.inbox.ownershipChanged();
  other.inbox.ownershipChanged();
  await other.inbox.accept(events(5, 3));
  await actors.advance(10 * WINDOW_MS);
  for (const { log, inbox } of [one, other]) {
    t.same(ticksOf(log), ['2', '3', '5'], 'the next owner releases what waited, each once');
    t.match(inbox.counters(), { waiting: 0, waitingBytes: 0 });
  }
});

// covers C18
t.test('event inbox: a node without a lease takes nothing, to be repeated after a second', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const lease = { runs: false };
  const { inbox } = await open(actors, undefined, OWNS_ALL, { admits: () => lease.runs });
  const { retryAfterSeconds } = await rejectsWith(t, inbox.accept(events(1)), 'JournalUnavailable');
  t.equal(retryAfterSeconds, 1);
  t.match(inbox.counters(), { accepted: 0, waiting: 0 });
  lease.runs = true;
  t.same(await inbox.accept(events(1)), { accepted: 1, duplicates: 0 });
});
