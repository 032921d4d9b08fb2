/** The order of events against a reference, and the log of events under crashes at any point. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import t from 'tap';
import { ReorderWindow, type Waiting } from '../../../src/actors/events/reorder-window.ts';
import { everySeed, runs, seeds } from '../../support/depth.ts';
import { simulateEvents } from '../../support/events/event-simulation.ts';

t.setTimeout(120_000);

const SEEDS = 1_000;
const TRIMMING_SEEDS = 400;
const WINDOW_MS = 500;
/** Another event in the place of the one that was released. */
const OTHER_ROW = ['', '1', '', null, null, null, null, '', 0, null];

/** The reference: a list that is searched and sorted at every step. */
class ReferenceWindow {
  #events: Waiting[] = [];
  #expired = new Set<Waiting>();

  add(event: Waiting): void {
    this.#events.push(event);
  }

  take(nowMs: number): Waiting[] {
    const order = (a: Waiting, b: Waiting) =>
      a.tick < b.tick ? -1 : a.tick > b.tick ? 1 : a.arrival - b.arrival;
    for (const event of this.#events) {
      if (nowMs - event.acceptedMs >= WINDOW_MS) this.#expired.add(event);
    }
    const last = [...this.#expired].sort(order).at(-1);
    const taken = this.#events.filter((event) => last !== undefined && order(event, last) <= 0).sort(order);
    this.#events = this.#events.filter((event) => !taken.includes(event));
    this.#expired = new Set(this.#events.filter((event) => this.#expired.has(event)));
    return taken;
  }
}

const moves = fc.array(
  fc.oneof(
    fc.record({ add: fc.bigInt({ min: 0n, max: 40n }) }),
    fc.record({ add: fc.constant(2n ** 63n - 1n) }),
    fc.record({ waitMs: fc.integer({ min: 0, max: 400 }) }),
  ),
  { maxLength: 60 },
);

t.test('reorder window: gives what a sorted list gives, in slices of any size', async (t) => {
  fc.assert(
    fc.property(moves, fc.integer({ min: 1, max: 7 }), (steps, slice) => {
      const window = new ReorderWindow<Waiting>();
      const reference = new ReferenceWindow();
      let nowMs = 1_000;
      const compare = () => {
        const taken: Waiting[] = [];
        for (;;) {
          const part = window.take(nowMs, WINDOW_MS, slice);
          taken.push(...part);
          if (part.length === 0) break;
        }
        const expected = reference.take(nowMs);
        return taken.map(({ arrival }) => arrival).join() === expected.map(({ arrival }) => arrival).join();
      };
      for (const [arrival, step] of steps.entries()) {
        if ('add' in step) {
          const event = { tick: step.add, arrival, acceptedMs: nowMs };
          window.add(event);
          reference.add(event);
        } else nowMs += step.waitMs;
        if (!compare()) return false;
      }
      nowMs += WINDOW_MS;
      return compare() && window.size === 0 && window.waitMs(nowMs, WINDOW_MS) === undefined;
    }),
    runs(20_000),
  );
  t.pass();
});

t.test(
  'reorder window: knows when the next event is due, and a clock that is set back delays none',
  async (t) => {
    const window = new ReorderWindow<Waiting>();
    t.equal(window.waitMs(0, WINDOW_MS), undefined);
    window.add({ tick: 5n, arrival: 1, acceptedMs: 1_000 });
    t.equal(window.waitMs(1_200, WINDOW_MS), 300);
    t.same(window.take(1_499, WINDOW_MS, 10), []);
    t.equal(window.waitMs(1_500, WINDOW_MS), 0);
    t.equal(window.waitMs(900, WINDOW_MS), 0);
    t.equal(window.take(900, WINDOW_MS, 10).length, 1);
    window.add({ tick: 6n, arrival: 2, acceptedMs: 1_000 });
    t.equal(window.take(1_000, 0, 10).length, 1, 'no window: at once');
  },
);

t.test('reorder window: what was taken is let go', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const window = new ReorderWindow<Waiting>();
  const added: WeakRef<Waiting>[] = [];
  for (let arrival = 1; arrival <= 500; arrival += 1) {
    const event = { tick: BigInt(arrival), arrival, acceptedMs: 0 };
    added.push(new WeakRef(event));
    window.add(event);
    window.take(WINDOW_MS, WINDOW_MS, 10);
  }
  // A reference that was read stays alive until the turn is over.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  t.ok(added.filter((event) => event.deref() !== undefined).length <= 1, 'but the last');
});

t.test(
  'event log: no event is lost or repeated and no sequence number is used twice, over random histories',
  async (t) => {
    for (const seed of seeds(SEEDS)) {
      const broken = await simulateEvents(seed);
      if (broken !== undefined) t.fail(`seed ${seed}: ${broken}`);
    }
    for (const seed of seeds(TRIMMING_SEEDS)) {
      const broken = await simulateEvents(seed, { rowsMax: 20 });
      if (broken !== undefined) t.fail(`trimming, seed ${seed}: ${broken}`);
    }
    t.pass();
  },
);

t.test('event log: the simulation sees planted faults', async (t) => {
  const found = async (options: Parameters<typeof simulateEvents>[1]) => {
    for (const seed of everySeed(300)) {
      const broken = await simulateEvents(seed, options);
      if (broken !== undefined) return broken;
    }
    return undefined;
  };
  t.ok(await found({ faults: { acknowledgesEarly: true } }), 'acknowledged before it is written');
  t.ok(
    await found({ faults: { tamper: (group) => group.filter(({ op }) => op !== 'eventAccept') } }),
    'accepted events that do not reach the disk',
  );
  t.ok(
    await found({
      faults: {
        tamper: (turn) =>
          turn.map((row) => (row.op === 'eventRelease' ? { op: 'eventPublish', row: OTHER_ROW } : row)),
      },
    }),
    'released events that go on waiting',
  );
});
