/** The timers of an actor in one array against a Map: any order of setting and removing. */
import { deepStrictEqual } from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import {
  dueOf,
  restoredTimers,
  type TimerList,
  timerPairs,
  withTimer,
} from '../../../src/actors/runtime/timer-list.ts';
import { runs } from '../../support/depth.ts';

const name = fc.constantFrom('sweep', 'expiry', 'clean:1882590551890460674', '', '7');

t.test('due timers: set, moved and removed as in a Map, and nothing is left of the last one', (t) => {
  const change = fc.tuple(name, fc.oneof(fc.constant(null), fc.nat()));
  const property = () =>
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), name, (changes, wanted) => {
        let timers: TimerList | undefined;
        const map = new Map<string, number>();
        for (const [changed, dueMs] of changes) {
          const given = timers;
          const before = timerPairs(given);
          timers = withTimer(timers, [changed, dueMs]);
          deepStrictEqual(timerPairs(given), before, 'a list that was handed out stays as it was');
          if (dueMs === null) map.delete(changed);
          else map.set(changed, dueMs);
        }
        deepStrictEqual(timerPairs(timers), [...map]);
        deepStrictEqual(restoredTimers(timerPairs(timers)), timers, 'a snapshot brings the same ones back');
        deepStrictEqual(dueOf(timers, wanted), map.get(wanted));
        deepStrictEqual(timers === undefined, map.size === 0);
      }),
      runs(3_000),
    );
  t.doesNotThrow(property);
  t.end();
});
