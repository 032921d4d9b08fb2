/** The bodies that are looked at once a second: which of them an interval reaches, and that they keep none that is over. */
import { GCProfiler } from 'node:v8';
import fc from 'fast-check';
import t from 'tap';
import type { OpenBody } from '../../../src/io/http/body/open-bodies.ts';
import { runs } from '../../support/depth.ts';
import { heldBodies } from '../../support/http.ts';

class Body implements OpenBody {
  openAt = -1;
  intervals = 0;
  /** Holds as much memory as the objects of a request. */
  readonly kept = Array.from({ length: 40 }, (_, at) => ({ at, text: `x${at}`, more: [at, at] }));

  onInterval(): void {
    this.intervals += 1;
  }
}

function start() {
  const { openBodies: open, second } = heldBodies();
  return { open, second: () => second() };
}

t.test('open bodies: after any history an interval reaches each that is open once', async (t) => {
  const step = fc.record({ at: fc.nat(9), adds: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const { open, second } = start();
      const bodies = Array.from({ length: 10 }, () => new Body());
      const expected = new Set<Body>();
      for (const { at, adds } of steps) {
        const body = bodies[at];
        if (body === undefined) continue;
        if (adds) open.add(body);
        else open.delete(body);
        if (adds) expected.add(body);
        else expected.delete(body);
      }
      second();
      return bodies.every((body) => body.intervals === (expected.has(body) ? 1 : 0));
    }),
    runs(1_000),
  );
  t.pass('1,000 histories');
});

t.test('open bodies: after a quiet time, bodies that came and went reach no old generation', async (t) => {
  const { open } = start();
  const live = Array.from({ length: 64 }, () => new Body());
  for (const body of live) open.add(body);
  const replace = (count: number) => {
    for (let done = 0; done < count; done += 1) {
      const at = done % live.length;
      const body = live[at];
      if (body !== undefined) open.delete(body);
      live[at] = new Body();
      open.add(live[at]);
    }
  };
  replace(1_000);
  // Some minor collections, which what stays survives.
  let made: unknown;
  for (let done = 0; done < 3_000_000; done += 1) made = [done, done, done, done];
  t.ok(made);
  const profiler = new GCProfiler();
  profiler.start();
  replace(20_000);
  const bytes = (profiler.stop()?.statistics ?? [])
    .filter(({ gcType }) => gcType === 'Scavenge')
    .map(({ beforeGC, afterGC }) => oldBytes(afterGC) - oldBytes(beforeGC))
    .reduce((sum, each) => sum + each, 0);
  t.ok(bytes < 20_000 * 100, `${bytes} bytes of 20,000 bodies`);
});

type HeapAt = ReturnType<GCProfiler['stop']>['statistics'][number]['afterGC'];

function oldBytes({ heapSpaceStatistics }: HeapAt): number {
  return heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')?.spaceUsedSize ?? 0;
}
