/** The watchdog of the event loop: which stretch of a tick it names, and that requests are noted. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { type LongTick, LoopWatch } from '../../../src/io/observability/loop-watch.ts';
import { route, startHttp } from '../../support/http.ts';

function watched() {
  const seen: LongTick[] = [];
  const clock = { ms: 0 };
  const ends: (() => void)[] = [];
  const watch = new LoopWatch(
    (tick) => void seen.push(tick),
    () => clock.ms,
    (end) => void ends.push(end),
  );
  const work = (route: string, ms: number, tool?: string) => {
    watch.note(route, tool);
    clock.ms += ms;
  };
  const end = () => {
    for (const act of ends.splice(0)) act();
  };
  return { seen, clock, watch, work, end, ends };
}

// covers S40
t.test('loop watch: a stretch of more than 100 ms is named with its route and tool', async (t) => {
  const { seen, work, end } = watched();
  work('/a', 3);
  work('/mcp', 101, 'slow');
  work('/b', 60);
  end();
  t.same(seen, [{ route: '/mcp', tool: 'slow', durationMs: 101 }]);
});

t.test('loop watch: of several the longest is named, the last one of a tick too', async (t) => {
  const { seen, work, end } = watched();
  work('/a', 200);
  work('/b', 300);
  end();
  t.same(seen, [{ route: '/b', tool: '', durationMs: 300 }]);
});

t.test(
  'loop watch: 100 ms, many short stretches and the time between two ticks are no long tick',
  async (t) => {
    const { seen, clock, work, end, ends } = watched();
    work('/a', 100);
    for (let index = 0; index < 10; index += 1) work('/b', 50);
    t.equal(ends.length, 1, 'one end is awaited');
    end();
    clock.ms += 10_000;
    work('/c', 1);
    end();
    t.same(seen, []);
  },
);

// covers S40
t.test('loop watch: the handler of a request counts for its route', async (t) => {
  const { seen, clock, watch, end } = watched();
  const slow = route('GET /slow', { limits: ['NoRateLimit'] }, () => {
    clock.ms += 150;
    return null;
  });
  const http = closeAfter(t, startHttp({ routes: [slow], pipeline: { loopWatch: watch } }));
  await fetch(`${http.url}/slow`);
  end();
  t.same(seen, [{ route: '/slow', tool: '', durationMs: 150 }]);
});
