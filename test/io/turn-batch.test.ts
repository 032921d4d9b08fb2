import t from 'tap';
import { TURN_BATCH_MAX, TurnBatch } from '../../src/io/turn-batch.ts';

/** The end of the turn comes when the test says so. */
function turns() {
  const planned: (() => void)[] = [];
  return {
    planned,
    later: (act: () => void) => void planned.push(act),
    end: () => {
      for (const act of planned.splice(0)) act();
    },
  };
}

t.test('items of one turn run together at its end, in their order, with one appointment', async (t) => {
  const ran: number[] = [];
  const turn = turns();
  const batch = new TurnBatch<number>((item) => void ran.push(item), turn.later);
  for (const item of [1, 2, 3]) batch.add(item);
  t.same(ran, [], 'nothing before the end');
  t.equal(turn.planned.length, 1);
  turn.end();
  t.same(ran, [1, 2, 3]);
  batch.add(4);
  t.equal(turn.planned.length, 1, 'the next turn has an appointment of its own');
  turn.end();
  t.same(ran, [1, 2, 3, 4]);
});

t.test('an item that comes while the batch runs waits for the next turn', async (t) => {
  const ran: string[] = [];
  const turn = turns();
  const batch: TurnBatch<string> = new TurnBatch((item) => {
    ran.push(item);
    if (item === 'first') batch.add('second');
  }, turn.later);
  batch.add('first');
  turn.end();
  t.same(ran, ['first']);
  turn.end();
  t.same(ran, ['first', 'second']);
});

t.test('what comes beyond the bound of a turn runs at once and the others still at its end', async (t) => {
  const ran: number[] = [];
  const turn = turns();
  const batch = new TurnBatch<number>((item) => void ran.push(item), turn.later);
  for (let item = 0; item <= TURN_BATCH_MAX; item += 1) batch.add(item);
  t.same(ran, [TURN_BATCH_MAX]);
  turn.end();
  t.equal(ran.length, TURN_BATCH_MAX + 1);
  t.equal(ran[1], 0);
});

t.test(
  'an item that throws does not keep the others from running, and the throw is not swallowed',
  async (t) => {
    const ran: number[] = [];
    const turn = turns();
    const batch = new TurnBatch<number>((item) => {
      if (item === 2) throw new Error('a bug');
      ran.push(item);
    }, turn.later);
    for (const item of [1, 2, 3]) batch.add(item);
    t.throws(() => turn.end(), { message: 'a bug' });
    t.same(ran, [1, 3]);
  },
);
