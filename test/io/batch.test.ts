import t from 'tap';
import { LoopTick, TICK_BATCH_MAX, TickBatch } from '../../src/io/batch.ts';

/** The end of a turn comes when the test says so. */
function loop() {
  const planned: (() => void)[] = [];
  return {
    planned,
    tick: new LoopTick((act) => void planned.push(act)),
    end: () => {
      for (const act of planned.splice(0)) act();
    },
  };
}

t.test(
  'items of one turn run together at its end, in their order, with one appointment for each row',
  async (t) => {
    const ran: number[] = [];
    const { tick, planned, end } = loop();
    const batch = new TickBatch<number>('send', (item) => void ran.push(item), tick);
    for (const item of [1, 2, 3]) batch.add(item);
    t.same(ran, [], 'nothing before the end');
    t.equal(planned.length, 3);
    end();
    t.same(ran, [1, 2, 3]);
    batch.add(4);
    t.equal(planned.length, 3, 'the next turn has appointments of its own');
    end();
    t.same(ran, [1, 2, 3, 4]);
  },
);

for (const phase of ['work', 'send'] as const)
  t.test(`an item of the row ${phase} that comes while its batch runs waits for the next turn`, async (t) => {
    const ran: string[] = [];
    const { tick, planned, end } = loop();
    const batch: TickBatch<string> = new TickBatch(
      phase,
      (item) => {
        ran.push(item);
        if (item === 'first') batch.add('second');
      },
      tick,
    );
    batch.add('first');
    end();
    t.same(ran, ['first']);
    end();
    t.same(ran, ['first', 'second']);
    t.equal(planned.length, 0, 'and nothing is planned without an item');
  });

t.test('what work comes to by kept promises leaves in the same turn of the real loop', async (t) => {
  const tick = new LoopTick();
  const ran: string[] = [];
  const send = new TickBatch<string>('send', (item) => void ran.push(`sent ${item}`), tick);
  const work = new TickBatch<string>(
    'work',
    (item) => {
      const result = Promise.resolve(item).then((value) => value);
      void result.then((value) => send.add(value));
    },
    tick,
  );
  work.add('one');
  work.add('two');
  // Behind both rows in the check phase, and before the next poll phase.
  await new Promise<void>((resolve) =>
    setImmediate(() => {
      ran.push('the turn is over');
      resolve();
    }),
  );
  t.same(ran, ['sent one', 'sent two', 'the turn is over']);
});

t.test('what comes beyond the bound of a turn runs at once and the others still at its end', async (t) => {
  const ran: number[] = [];
  const { tick, end } = loop();
  const batch = new TickBatch<number>('send', (item) => void ran.push(item), tick);
  for (let item = 0; item <= TICK_BATCH_MAX; item += 1) batch.add(item);
  t.same(ran, [TICK_BATCH_MAX]);
  end();
  t.equal(ran.length, TICK_BATCH_MAX + 1);
  t.equal(ran[1], 0);
});

t.test(
  'what arrived is worked on before what leaves is sent, and what it comes to leaves in the same turn',
  async (t) => {
    const ran: string[] = [];
    const { tick, planned, end } = loop();
    const send = new TickBatch<string>('send', (item) => void ran.push(`sent ${item}`), tick);
    const work = new TickBatch<string>(
      'work',
      (item) => {
        ran.push(`worked on ${item}`);
        send.add(item);
      },
      tick,
    );
    send.add('an old one');
    work.add('one');
    work.add('two');
    t.equal(planned.length, 3, 'one appointment for each row');
    end();
    t.same(ran, ['worked on one', 'worked on two', 'sent an old one', 'sent one', 'sent two']);
    t.equal(planned.length, 0);
  },
);

t.test(
  'an item that throws does not keep the others from running, and shows as an unhandled bug',
  async (t) => {
    const ran: number[] = [];
    const { tick, end } = loop();
    const batch = new TickBatch<number>(
      'send',
      (item) => {
        if (item === 2) throw new Error('a bug');
        ran.push(item);
      },
      tick,
    );
    for (const item of [1, 2, 3]) batch.add(item);
    const bugs: unknown[] = [];
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.once('uncaughtException', (error) => bugs.push(error));
    end();
    t.same(ran, [1, 3]);
    await new Promise((resolve) => setImmediate(resolve));
    for (const listener of listeners) process.on('uncaughtException', listener);
    t.match(bugs, [{ message: 'a bug' }]);
  },
);
