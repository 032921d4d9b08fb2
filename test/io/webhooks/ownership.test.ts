/** Webhooks of a node: it delivers to the applications of its partitions, and takes over without gap or repetition. */
import t from 'tap';
import { SECOND_MS } from '../../../src/domain/time.ts';
import { createRig } from '../../support/events/webhooks.ts';

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
