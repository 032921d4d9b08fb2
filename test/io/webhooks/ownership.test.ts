/** Webhooks of a node: it delivers to the applications of its partitions, and takes over without gap or repetition. */
import t, { type Test } from 'tap';
import { NotOwner } from '../../../src/actors/runtime/not-owner.ts';
import type { Ownership } from '../../../src/actors/runtime/ownership.ts';
import { partitionOf } from '../../../src/domain/ids.ts';
import { MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { LeaseOver } from '../../../src/io/webhooks/lease.ts';
import { WEBHOOK_VERBS, WebhookOwnerWork, webhookVerbs } from '../../../src/io/webhooks/owner-work.ts';
import { type RigOptions, startRig } from '../../support/events/webhooks.ts';

/** Between two checkpoints. */
const CHECKPOINT_MS = 30 * SECOND_MS;
const urlOf = (appId: string) => `https://hook${appId}.example/`;

/** A node that owns these applications, which have webhooks. */
async function start(t: Test, appIds: readonly string[] = ['77'], options: RigOptions = {}) {
  const owned = new Set(appIds);
  const asked = new Set<string>();
  const owns = (kind: string, id: string) => {
    asked.add(kind);
    return owned.has(id);
  };
  const rig = await startRig(t, appIds, { ownership: { owns }, ...options });
  const changed = () => rig.dispatcher.ownershipChanged();
  return {
    rig,
    owned,
    asked,
    numbers: (appId: string) => rig.receivers.numbers(urlOf(appId)),
    checkpoint: (appId: string) => rig.actors.system.administration.metaGet(`webhooks.${partitionOf(appId)}`),
    /** Another node owns it from now on. */
    async give(appId: string) {
      owned.delete(appId);
      await changed();
    },
    async take(appId: string) {
      owned.add(appId);
      await changed();
      await rig.settle();
    },
  };
}

function twoOfOnePartition(): string[] {
  const wanted = partitionOf('77');
  for (let number = 78; ; number += 1)
    if (partitionOf(String(number)) === wanted) return ['77', String(number)];
}

t.test('webhooks: a start and a change pass over applications of other nodes', async (t) => {
  const { rig, asked, numbers } = await start(t);
  await rig.register('78');
  await rig.restart();
  t.same(
    [...rig.dispatcher.subscriptions.all()].map(({ view }) => view.appId),
    ['77'],
  );
  await rig.append();
  t.same(numbers('77'), [1]);
  t.same(numbers('78'), []);
  rig.dispatcher.changed('78');
  await rig.settle();
  t.equal(rig.dispatcher.subscriptions.get('78'), undefined);
  t.same([...asked], ['app']);
});

t.test(
  'webhooks: an application that this node takes over gets what the other has not delivered',
  async (t) => {
    const { rig, give, take, numbers } = await start(t, ['77', '78']);
    await rig.append();
    await give('78');
    t.equal(rig.dispatcher.subscriptions.get('78'), undefined);
    for (let n = 0; n < 2; n += 1) await rig.append();
    t.same(['77', '78'].map(numbers), [[1, 2, 3], [1]]);
    await take('78');
    await rig.append();
    await rig.actors.advance(SECOND_MS);
    for (const appId of ['77', '78']) t.same(numbers(appId), [1, 2, 3, 4], appId);
  },
);

t.test('webhooks: a delivery under way ends when its application moves, and settles nothing', async (t) => {
  const { rig, owned } = await start(t);
  rig.receivers.answer = () => 'never';
  await rig.append();
  owned.clear();
  await rig.dispatcher.ownershipChanged();
  await rig.append();
  t.equal(rig.receivers.inFlight, 0);
  t.equal((await rig.view('77')).failedCount, 0, 'the next owner counts it');
  t.same(await rig.lines('77'), []);
  t.equal(rig.dispatcher.subscriptions.size, 0, 'its end does not bring it back');
  t.equal(rig.dispatcher.counters().ended, 1);
});

t.test(
  'webhooks: an application that comes back has one delivery at a time, the first one again',
  async (t) => {
    const { rig, owned } = await start(t);
    rig.receivers.answer = () => 'never';
    for (let count = 0; count < 3; count += 1) await rig.append();
    owned.clear();
    const left = rig.dispatcher.ownershipChanged();
    owned.add('77');
    rig.receivers.answer = () => 200;
    await Promise.all([left, rig.dispatcher.ownershipChanged()]);
    await rig.settle();
    await rig.actors.advance(SECOND_MS);
    t.same(rig.receivers.numbers(), [1, 2, 3]);
    const [first, again] = rig.receivers.got;
    t.same([again?.webhookId, again?.body], [first?.webhookId, first?.body]);
  },
);

t.test(
  'webhooks: no attempt begins without a lease, and the first begins a second after it is back',
  async (t) => {
    const lease = { leftMs: 0 };
    const { rig } = await start(t, ['77'], { lease });
    await rig.append();
    await rig.actors.advance(10 * SECOND_MS);
    t.equal(rig.receivers.got.length, 0);
    lease.leftMs = 800;
    await rig.actors.advance(SECOND_MS);
    t.same(rig.receivers.numbers(), [1]);
  },
);

t.test(
  'webhooks: what a node without a lease could not read is read a second after it is back',
  async (t) => {
    const lease = { leftMs: 800 };
    const { rig, owned } = await start(t, ['77'], { lease });
    owned.clear();
    await rig.dispatcher.ownershipChanged();
    lease.leftMs = 0;
    rig.quarantined.add('77');
    owned.add('77');
    await rig.dispatcher.ownershipChanged();
    await rig.append();
    t.equal(rig.dispatcher.subscriptions.size, 0);
    lease.leftMs = 800;
    rig.quarantined.clear();
    await rig.actors.advance(SECOND_MS);
    t.same(rig.receivers.numbers(), [1]);
  },
);

t.test('webhooks: an attempt ends with the lease, and is made again with its id and bytes', async (t) => {
  const lease = { leftMs: 800 };
  const { rig } = await start(t, ['77'], { lease });
  rig.receivers.answer = () => 'never';
  await rig.append();
  await rig.actors.advance(10 * SECOND_MS);
  t.equal(rig.receivers.inFlight, 1, 'a lease that is renewed ends nothing');
  rig.receivers.answer = () => 200;
  lease.leftMs = 0;
  rig.log.append();
  await rig.actors.advance(800);
  t.equal(rig.receivers.inFlight, 0);
  await rig.actors.advance(10 * SECOND_MS);
  t.equal(rig.receivers.got.length, 1);
  lease.leftMs = 800;
  await rig.actors.advance(SECOND_MS);
  t.same(rig.receivers.numbers(), [1, 2]);
  const [first, again] = rig.receivers.got;
  t.same([again?.webhookId, again?.body], [first?.webhookId, first?.body]);
  t.equal((await rig.view('77')).failedCount, 0);
});

t.test('webhooks: without a lease no checkpoint is written, and a stop ends well', async (t) => {
  const lease = { leftMs: 800 };
  const { rig, checkpoint } = await start(t, ['77'], { lease });
  await rig.append();
  lease.leftMs = 0;
  await rig.actors.advance(CHECKPOINT_MS);
  t.equal(checkpoint('77'), undefined);
  const stopped = rig.dispatcher.stop(SECOND_MS);
  await rig.actors.advance(SECOND_MS);
  await stopped;
  t.equal(checkpoint('77'), undefined);
});

t.test(
  'webhooks: an application that comes back while it queues for a slot is delivered to once at a time',
  async (t) => {
    const concurrency = { inFlightMax: 2, perHostMax: 8, failingMax: 1, failingMin: 0 };
    const { rig, owned, give, take, numbers } = await start(t, [], { concurrency });
    for (const appId of ['78', '79', '77']) {
      owned.add(appId);
      await rig.register(appId, { ownerId: appId });
    }
    const waiting = new Map<string, (answer: 200) => void>();
    rig.receivers.answer = ({ url }) => new Promise((resolve) => waiting.set(url, resolve));
    for (const userId of ['78', '79', '77']) await rig.append(1, { userId });
    t.same([...waiting.keys()], [urlOf('78'), urlOf('79')], 'both slots are taken');
    await give('77');
    await take('77');
    for (const answer of [...waiting.values()]) answer(200);
    await rig.settle();
    t.equal(rig.receivers.got.filter(({ url }) => url === urlOf('77')).length, 1);
    waiting.get(urlOf('77'))?.(200);
    await rig.settle();
    t.same(numbers('77'), [3]);
  },
);

// covers C19
t.test(
  'webhooks: each partition has a checkpoint, and its next owner reads the log from there on',
  async (t) => {
    const { rig, owned, give, take, numbers, checkpoint } = await start(t, ['77', '78']);
    for (const appId of ['77', '78']) await rig.register(appId, { currencies: ['BTC'] });
    // The log is read from the beginning of new applications on.
    await rig.actors.advance(5 * MINUTE_MS);
    const append = (currency: string) => rig.append(1, { currency });
    await append('BTC');
    for (let count = 0; count < 50; count += 1) await append('EUR');
    await rig.actors.advance(CHECKPOINT_MS);
    t.same(['77', '78'].map(checkpoint), [51, 51]);
    t.equal(rig.actors.system.administration.metaGet('webhooks'), undefined, 'there is none in common');
    await give('78');
    await append('EUR');
    await append('BTC');
    await rig.actors.advance(CHECKPOINT_MS);
    t.same(['77', '78'].map(checkpoint), [53, 51]);
    rig.log.readFrom = Number.POSITIVE_INFINITY;
    await take('78');
    t.equal(rig.log.readFrom, 51, 'not from the only event that it was sent');
    t.same(numbers('78'), [1, 53]);
    rig.log.readFrom = Number.POSITIVE_INFINITY;
    await rig.restart();
    await append('BTC');
    await rig.actors.advance(CHECKPOINT_MS);
    for (const appId of owned) t.same(numbers(appId), [1, 53, 54], appId);
    t.ok(rig.log.readFrom >= 51, 'nor does a start');
    t.same(['77', '78'].map(checkpoint), [54, 54]);
  },
);

t.test(
  'webhooks: a checkpoint of its partition takes no event from an application that is not loaded yet',
  async (t) => {
    const [first = '', second = ''] = twoOfOnePartition();
    const { rig, numbers, checkpoint } = await start(t, [first, second]);
    // Its first state is in effect; the node has not heard of it, because the answer waits for another node.
    rig.dispatcher.subscriptions.delete(second);
    await rig.append();
    await rig.actors.advance(CHECKPOINT_MS);
    t.equal(checkpoint(first), 1);
    rig.dispatcher.changed(second);
    await rig.settle();
    await rig.actors.advance(SECOND_MS);
    t.same([first, second].map(numbers), [[1], [1]]);
  },
);

t.test('webhooks: one machine with the journal of a node delivers what the node has not', async (t) => {
  const options: { ownership?: Ownership } = { ownership: { owns: () => true } };
  const rig = await startRig(t, ['77'], options);
  await rig.append();
  await rig.actors.advance(CHECKPOINT_MS);
  rig.log.forget();
  for (let count = 0; count < 2; count += 1) rig.log.append();
  delete options.ownership;
  await rig.restart();
  await rig.actors.advance(SECOND_MS);
  t.same(rig.receivers.numbers(), [1, 2, 3]);
});

t.test('webhooks: an application that moves while it is read is not loaded', async (t) => {
  const { rig, owned } = await start(t);
  rig.dispatcher.subscriptions.delete('77');
  rig.dispatcher.changed('77');
  owned.clear();
  // An actor that another node owns cannot be read here.
  rig.quarantined.add('77');
  await rig.dispatcher.ownershipChanged();
  await rig.settle();
  t.equal(rig.dispatcher.subscriptions.get('77'), undefined);
});

t.test(
  'webhooks: an application that cannot be read is tried once a minute, however often owners change',
  async (t) => {
    let reads = 0;
    const ownership = {
      owns() {
        reads += 1;
        return true;
      },
    };
    const rig = await startRig(t, ['77'], { ownership });
    rig.dispatcher.subscriptions.delete('77');
    rig.quarantined.add('77');
    for (let count = 0; count < 5; count += 1) await rig.dispatcher.ownershipChanged();
    reads = 0;
    await rig.actors.advance(MINUTE_MS);
    t.equal(reads, 1);
    rig.quarantined.clear();
    await rig.actors.advance(MINUTE_MS);
    t.not(rig.dispatcher.subscriptions.get('77'), undefined);
  },
);

t.test('webhooks: a node that dies loses no event that the next owner has to deliver', async (t) => {
  const { rig, owned, take } = await start(t);
  rig.receivers.answer = () => 'never';
  for (let count = 0; count < 3; count += 1) await rig.append();
  await rig.actors.advance(CHECKPOINT_MS);
  owned.clear();
  await rig.restart();
  t.equal(rig.dispatcher.subscriptions.size, 0);
  rig.log.append();
  rig.receivers.answer = () => 200;
  await take('77');
  await rig.actors.advance(MINUTE_MS);
  t.same(rig.receivers.numbers(), [1, 2, 3, 4]);
});

t.test(
  'webhooks: operations of owners end where another node delivers, before anything is sent',
  async (t) => {
    const { rig, owned } = await start(t);
    const work = new WebhookOwnerWork({
      ...{ dispatcher: rig.dispatcher, actors: rig.actors.system, log: rig.log },
      ...{ attemptLog: undefined, clock: rig.clock.read },
    });
    const verbs = webhookVerbs(work, (appId) => {
      if (!owned.has(appId)) throw new NotOwner();
    });
    t.match(await verbs.webhookPing('77'), { delivered: true });
    rig.dispatcher.subscriptions.delete('77');
    t.match(await verbs.webhookPing('77'), { delivered: true }, 'what is not loaded yet is loaded');
    const moved = [verbs.webhookPing('77')];
    owned.clear();
    await t.rejects(Promise.all(moved), LeaseOver, 'while it moves');
    for (const name of WEBHOOK_VERBS) t.throws(() => verbs[name]('77'), NotOwner, name);
    await t.rejects(work.ping('77'), NotOwner);
    for (const name of WEBHOOK_VERBS) t.throws(() => verbs[name](77), TypeError, name);
    t.equal(rig.receivers.got.length, 2);
  },
);
