/** Who has the machine: one at a time, whoever waits longest next, and each its share of the time. */
import fc from 'fast-check';
import t from 'tap';
import { Turns } from '../../bench/turns.ts';
import { runs } from '../support/depth.ts';

/** Longer than a turn. */
const LONG_MS = 60_000;

/** Microtasks that are under way. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

t.test('turns: the machine goes round, and a short turn is not over', async (t) => {
  let nowMs = 0;
  const order: string[] = [];
  const turns = new Turns(1e9, () => nowMs);
  const play = async (name: string, parts: number) => {
    const turn = turns.join();
    await turn.begin();
    for (let part = 1; part <= parts; part += 1) {
      order.push(`${name}${part}`);
      nowMs += part === 1 ? 1 : LONG_MS;
      const others = await turn.rest();
      if (others) order.push(`${name} again`);
    }
    t.equal(turn.hadMs, 1 + LONG_MS * (parts - 1), 'nothing of what others had');
    turn.end();
    t.equal(turn.isOn, false);
  };
  await Promise.all([play('A', 3), play('B', 2), play('C', 2)]);
  t.same(order, ['A1', 'A2', 'B1', 'B2', 'C1', 'C2', 'A again', 'A3', 'B again', 'C again', 'A again']);
});

t.test('turns: alone nobody rests', async (t) => {
  let nowMs = 0;
  const turn = new Turns(1e9, () => nowMs).join();
  await turn.begin();
  nowMs = LONG_MS;
  t.equal(await turn.rest(), false);
});

t.test('turns: who leaves while others have the machine does not get it again', async (t) => {
  let nowMs = 0;
  const turns = new Turns(1e9, () => nowMs);
  const [one, other] = [turns.join(), turns.join()];
  await one.begin();
  const later = other.begin();
  nowMs = LONG_MS;
  const again = one.rest();
  await later;
  one.end();
  await t.rejects(again, { message: 'its turns are over' });
  await t.rejects(one.rest(), { message: 'its turns are over' });
  await t.rejects(one.begin(), { message: 'its turns are over' });
  t.equal(other.isOn, true, 'the other one has it still');
  other.end();
  const third = turns.join();
  await third.begin();
  t.equal(third.isOn, true, 'and then whoever comes');
});

t.test('turns: what one leaves of its share is the others’', async (t) => {
  let nowMs = 200;
  const turns = new Turns(1_000, () => nowMs);
  const [two, one, half, last] = [turns.join(2), turns.join(), turns.join(0.5), turns.join(0.5)];
  await two.begin();
  t.equal(two.leftMs, 400, 'two of four parts of 800');
  nowMs = 300;
  t.equal(two.leftMs, 300);
  t.equal(one.leftMs, 200, 'one of four parts, of which it had nothing');
  two.end();
  t.equal(one.leftMs, 350, 'the first was over early: half of 700');
  one.end();
  half.end();
  nowMs = 900;
  t.equal(last.leftMs, 100, 'the last one has the rest');
  nowMs = 1_100;
  t.equal(last.leftMs, -100, 'too late');
});

t.test('turns: one at a time whatever they do, and each comes to its end', async () => {
  const plan = fc.array(fc.record({ parts: fc.nat(5), ms: fc.nat(20_000) }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(plan, async (all) => {
      let nowMs = 0;
      let [on, over, hadMs] = [0, 0, 0];
      const turns = new Turns(1e9, () => nowMs);
      const alone = async () => {
        on += 1;
        await settled();
        if (on !== 1) throw new Error(`${on} at once`);
        on -= 1;
      };
      const play = async ({ parts, ms }: { parts: number; ms: number }) => {
        const turn = turns.join();
        await turn.begin();
        await alone();
        for (let part = 0; part < parts; part += 1) {
          nowMs += ms;
          await turn.rest();
          await alone();
        }
        hadMs += turn.hadMs;
        turn.end();
        over += 1;
      };
      await Promise.all(all.map(play));
      return over === all.length && hadMs === nowMs;
    }),
    runs(200),
  );
});
