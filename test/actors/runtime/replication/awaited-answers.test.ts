/** Answers that waited for another actor, on nodes of a cluster. */
import t from 'tap';
import { stopAfter } from '../../../../kit/close-after.ts';
import { defineActor, Later } from '../../../../src/actors/runtime/actor.ts';
import { messageTo, type Protocol, receiver } from '../../../../src/actors/runtime/protocol.ts';
import { TestCluster } from '../../../support/actors/cluster.ts';

type Command =
  | { readonly type: 'begin'; readonly toId: string; readonly ownId: string }
  | { readonly type: 'work'; readonly commandId: string; readonly fromId: string }
  | { readonly type: 'end'; readonly commandId: string };
type AskerProtocol = Protocol<
  Command,
  { readonly begin: string },
  { readonly type: 'worked' },
  { readonly worked: number }
>;

const ASKERS = receiver<Extract<Command, { type: 'work' | 'end' }>>('asker');
const asker = defineActor<number, AskerProtocol, 'worked'>({
  kind: ASKERS,
  version: 1,
  limits: { mailbox: 10, snapshotEvery: 4, idleMs: 60_000 },
  initial: () => 0,
  evolve: (worked) => worked + 1,
  query: { worked: (worked) => worked },
  decide: {
    begin: (_, { toId, ownId }, { commandId }) => ({
      send: [messageTo(ASKERS, toId, { type: 'work', commandId, fromId: ownId })],
      reply: new Later(commandId),
    }),
    work: (_, { commandId, fromId }) => ({
      events: ['worked'],
      send: [messageTo(ASKERS, fromId, { type: 'end', commandId })],
    }),
    end: (_, { commandId }) => ({ answers: [{ commandId, reply: 'done' }] }),
  },
});

t.test('an answer that waited for another actor leaves when every node has applied it', async (t) => {
  const cluster = stopAfter(t, new TestCluster([asker]));
  const a = await cluster.add('a');
  const b = await cluster.add('b');
  const c = await cluster.add('c');
  const [ownId, toId] = [cluster.idOf(a, asker), cluster.idOf(b, asker)];
  c.isUnlinked = true;
  let isAnswered = false;
  const begun = a.system.ask(asker, ownId, { type: 'begin', toId, ownId }).then((reply) => {
    isAnswered = true;
    return reply;
  });
  await cluster.settle();
  t.equal(await b.system.query(asker, toId, { type: 'worked' }), 1);
  t.same(
    [a.node.gated, isAnswered],
    [1, false],
    'the third node has not said that it has applied the answer',
  );
  await cluster.advance(400);
  t.equal(await begun, 'done', 'its renewal says so');
});
