/** Ids over restarts: the floor on disk, by node, and from one machine to nodes and back. */
import fc from 'fast-check';
import t from 'tap';
import { IdGenerator, storedFloor } from '../../../src/actors/runtime/id-generator.ts';
import { floorKey } from '../../../src/actors/runtime/journal/port.ts';
import { tickAt } from '../../../src/domain/ids.ts';
import { runs } from '../../support/depth.ts';

/** A journal's metadata: what was reserved is on disk at once, as it is before an id leaves. */
function metadata() {
  const stored = new Map<string, unknown>();
  const start = (node?: number) =>
    new IdGenerator(
      storedFloor({ meta: (key) => stored.get(key) }, node),
      (floor) => stored.set(floorKey(node), floor),
      node,
    );
  return { stored, start };
}

t.test('ids: nodes that stop, start, and whose clocks are set, give no id twice and rise', (t) => {
  const step = fc.record({
    /** 0 is the single machine: all nodes stop for it. */
    who: fc.integer({ min: 0, max: 4 }),
    movesMs: fc.oneof(fc.constant(0), fc.integer({ min: -3_600_000, max: 3_600_000 })),
    restarts: fc.boolean(),
    takes: fc.integer({ min: 1, max: 30 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { start } = metadata();
      const running = new Map<number, IdGenerator>();
      const last = new Map<number, bigint>();
      const seen = new Set<bigint>();
      let nowMs = 1_767_225_600_000;
      for (const { who, movesMs, restarts, takes } of steps) {
        nowMs += movesMs;
        if (restarts) running.delete(who);
        const others = [...running.keys()].filter((each) => (who === 0) !== (each === 0));
        for (const each of others) running.delete(each);
        const ids = running.get(who) ?? start(who === 0 ? undefined : who);
        running.set(who, ids);
        for (let taken = 0; taken < takes; taken += 1) {
          const id = ids.next(nowMs);
          if (seen.has(id) || id <= (last.get(who) ?? 0n)) return false;
          seen.add(id);
          last.set(who, id);
        }
      }
      return true;
    }),
    runs(),
  );
  t.end();
});

t.test('ids: one machine begins above the floor of every node, a node above its own and the machine', (t) => {
  const { stored, start } = metadata();
  const floor = (ms: number) => BigInt(ms) << 20n;
  stored.set('tickFloor', floor(100));
  stored.set('tickFloor.3', floor(300));
  stored.set('tickFloor.63', floor(6_300));
  t.equal(start().next(0), floor(6_300) + 1n);
  t.equal(stored.get('tickFloor'), floor(7_300) + 1n, 'one second ahead');
  stored.set('tickFloor', floor(100));
  t.equal(start(3).next(0), floor(300) + 3n);
  t.equal(start(4).next(0), floor(100) + 4n);
  t.equal(stored.get('tickFloor.4'), floor(1_100) + 4n);
  t.same([...stored.keys()].toSorted(), ['tickFloor', 'tickFloor.3', 'tickFloor.4', 'tickFloor.63']);
  t.end();
});

// covers C9
t.test(
  'ids: those of a node are above what it has applied of others, up to a second after its clock',
  (t) => {
    const newest = { applied: 0n, given: 0n };
    const reserved: bigint[] = [];
    const ids = new IdGenerator(0n, (floor) => reserved.push(floor), 2, newest);
    const nowMs = 50_000;
    t.equal(ids.next(nowMs), tickAt(nowMs) + 2n);
    t.equal(newest.given, tickAt(nowMs) + 2n, 'its next row says so');
    newest.applied = tickAt(nowMs + 999) + 1n;
    t.equal(ids.next(nowMs), tickAt(nowMs + 999) + 2n);
    newest.applied = tickAt(nowMs + 1_001);
    t.equal(ids.next(nowMs), tickAt(nowMs + 1_000) + 2n, 'a clock that is further ahead is not followed');
    t.equal(ids.next(nowMs), tickAt(nowMs + 1_000) + 66n);
    t.equal(ids.next(nowMs + 2_000), tickAt(nowMs + 2_000) + 2n);
    t.equal(newest.given, tickAt(nowMs + 2_000) + 2n);
    t.ok((reserved.at(-1) ?? 0n) > newest.given, 'the floor on disk stays ahead');
    t.end();
  },
);
