/** Webhooks of a node: it delivers to the applications of its partitions, and takes over without gap or repetition. */
import t from 'tap';
import { partitionOf } from '../../../src/domain/ids.ts';
import { MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { createRig } from '../../support/events/webhooks.ts';

/** Between two checkpoints. */
const CHECKPOINT_MS = 30 * SECOND_MS;
const urlOf = (appId: string) => `https://hook${appId}.example/`;

function owner(...appIds: string[]) {
  const owned = new Set(appIds);
  const asked = new Set<string>();
  const owns = (kind: string, id: string) => {
    asked.add(kind);
    return owned.has(id);
  };
  return { owned, asked, ownership: { owns } };
}

t.test('webhooks: a start and a change pass over applications of other nodes', async (t) => {
  const { ownership, asked } = owner('77');
  const rig = await createRig({ ownership });
  for (const appId of ['77', '78']) await rig.register(appId);
  await rig.restart();
  t.same(
    [...rig.dispatcher.subscriptions.all()].map(({ view }) => view.appId),
    ['77'],
  );
  rig.log.append();
  await rig.settle();
  t.same(rig.receivers.numbers(urlOf('77')), [1]);
  t.same(rig.receivers.numbers(urlOf('78')), []);
  rig.dispatcher.changed('78');
  await rig.settle();
  t.equal(rig.dispatcher.subscriptions.get('78'), undefined);
  t.same([[...asked], rig.faults], [['app'], []]);
});

t.test(
  'webhooks: an application that this node takes over gets what the other has not delivered',
  async (t) => {
    const { owned, ownership } = owner('77', '78');
    const rig = await createRig({ ownership });
    for (const appId of ['77', '78']) await rig.register(appId);
    const append = async () => {
      rig.log.append();
      await rig.settle();
    };
    await append();
    owned.delete('78');
    await rig.dispatcher.ownershipChanged();
    t.equal(rig.dispatcher.subscriptions.get('78'), undefined);
    await append();
    await append();
    t.same([rig.receivers.numbers(urlOf('77')), rig.receivers.numbers(urlOf('78'))], [[1, 2, 3], [1]]);
    owned.add('78');
    await rig.dispatcher.ownershipChanged();
    await rig.settle();
    await append();
    await rig.actors.advance(SECOND_MS);
    t.same(
      ['77', '78'].map((appId) => rig.receivers.numbers(urlOf(appId))),
      [
        [1, 2, 3, 4],
        [1, 2, 3, 4],
      ],
    );
    t.same(rig.faults, []);
  },
);

t.test('webhooks: a delivery under way ends, and is the last of an application that has moved', async (t) => {
  const { owned, ownership } = owner('77');
  const rig = await createRig({ ownership });
  await rig.register('77');
  let release: () => void = () => undefined;
  const held = new Promise<200>((resolve) => {
    release = () => resolve(200);
  });
  rig.receivers.answer = () => held;
  rig.log.append();
  await rig.settle();
  owned.clear();
  await rig.dispatcher.ownershipChanged();
  rig.log.append();
  release();
  await rig.settle();
  t.same(rig.receivers.numbers(), [1]);
  t.equal(rig.dispatcher.subscriptions.size, 0, 'its result does not bring it back');
  t.same(rig.faults, []);
});

// covers C19
t.test(
  'webhooks: each partition has a checkpoint, and its next owner reads the log from there on',
  async (t) => {
    const { owned, ownership } = owner('77', '78');
    const rig = await createRig({ ownership });
    const meta = (appId: string) =>
      rig.actors.system.administration.metaGet(`webhooks.${partitionOf(appId)}`);
    for (const appId of ['77', '78']) await rig.register(appId, { currencies: ['BTC'] });
    const append = async (currency: string) => {
      rig.log.append({ currency });
      await rig.settle();
    };
    await append('BTC');
    for (let count = 0; count < 50; count += 1) await append('EUR');
    await rig.actors.advance(CHECKPOINT_MS);
    t.same([meta('77'), meta('78')], [51, 51]);
    t.equal(rig.actors.system.administration.metaGet('webhooks'), undefined, 'there is none in common');
    owned.delete('78');
    await rig.dispatcher.ownershipChanged();
    await append('EUR');
    await append('BTC');
    await rig.actors.advance(CHECKPOINT_MS);
    t.same([meta('77'), meta('78')], [53, 51]);
    rig.log.readFrom = Number.POSITIVE_INFINITY;
    owned.add('78');
    await rig.dispatcher.ownershipChanged();
    await rig.settle();
    t.equal(rig.log.readFrom, 51, 'not from the only event that it was sent');
    t.same(rig.receivers.numbers(urlOf('78')), [1, 53]);
    rig.log.readFrom = Number.POSITIVE_INFINITY;
    await rig.restart();
    await append('BTC');
    await rig.actors.advance(CHECKPOINT_MS);
    for (const appId of owned) t.same(rig.receivers.numbers(urlOf(appId)), [1, 53, 54], appId);
    t.ok(rig.log.readFrom >= 51, 'nor does a start');
    t.same([meta('77'), meta('78')], [54, 54]);
    t.same(rig.faults, []);
  },
);

t.test('webhooks: a node that dies loses no event that the next owner has to deliver', async (t) => {
  const { owned, ownership } = owner('77');
  const rig = await createRig({ ownership });
  await rig.register('77');
  rig.receivers.answer = () => 'never';
  for (let count = 0; count < 3; count += 1) rig.log.append();
  await rig.settle();
  await rig.actors.advance(CHECKPOINT_MS);
  owned.clear();
  await rig.restart();
  t.equal(rig.dispatcher.subscriptions.size, 0);
  rig.log.append();
  rig.receivers.answer = () => 200;
  owned.add('77');
  await rig.dispatcher.ownershipChanged();
  await rig.settle();
  await rig.actors.advance(MINUTE_MS);
  t.same(rig.receivers.numbers(), [1, 2, 3, 4]);
  t.same(rig.faults, []);
});
