/** The line of relayed calls: shares, whole calls first, fairness, and that every place is given back. */
import fc from 'fast-check';
import t from 'tap';
import type { Holder } from '../../../src/domain/limits/holders.ts';
import type { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { type QueuedRelay, type QueueEntry, RelayQueue } from '../../../src/io/http-client/relay-queue.ts';
import { freshBounds } from '../../support/actors/bounds.ts';
import { runs } from '../../support/depth.ts';

const MAXIMA = { relayedCalls: 400, relayedWaiting: 400, relayedConnections: 8 };

class Call implements QueuedRelay {
  readonly holder: Holder;
  readonly name: string;
  isWhole: boolean;
  entry: QueueEntry | undefined;
  state: 'new' | 'gathering' | 'running' | 'over' = 'new';
  readonly #line: RelayQueue;
  /** Its body is here at once. */
  readonly #arrives: boolean;

  constructor(line: RelayQueue, holder: Holder, name: string, body: 'whole' | 'unfinished') {
    this.#line = line;
    this.holder = holder;
    this.name = name;
    this.#arrives = body === 'whole';
    this.isWhole = body === 'whole';
  }

  gather(): void {
    this.state = 'gathering';
    if (this.#arrives) this.#line.ready(this);
  }

  go(): void {
    this.state = 'running';
  }

  end(): void {
    this.state = 'over';
    this.#line.leave(this);
  }
}

function start(maxima = MAXIMA) {
  const bounds: SharedBounds = freshBounds(maxima);
  const line = new RelayQueue({
    calls: bounds.of('relayedCalls', 'm'),
    waiting: bounds.of('relayedWaiting', 'm'),
    connections: bounds.of('relayedConnections', 'm'),
  });
  const enter = (user: string, network: string, body: 'whole' | 'unfinished' = 'whole') => {
    const call = new Call(line, bounds.holders.of(network, user, `${user}s`), user, body);
    return { call, refusal: line.enter(call) };
  };
  const held = () =>
    ['relayedCalls', 'relayedWaiting', 'relayedConnections'].map(
      (name) => bounds.of(name as 'relayedCalls', 'm').counters().held,
    );
  return { bounds, line, enter, held };
}

// covers S59
t.test(
  'relay queue: unfinished bodies take no connection, whole calls of another user go at once',
  async (t) => {
    const { enter, held } = start();
    const slow = Array.from({ length: 156 }, () => enter('slow', '192.0.2.1', 'unfinished'));
    t.equal(slow.filter(({ refusal }) => refusal === undefined).length, 64, '32 admitted, 32 wait');
    t.match(slow.at(-1)?.refusal, { refusedBy: 'session' });
    t.same(held(), [32, 32, 0]);
    t.equal(enter('other', '192.0.2.2').call.state, 'running');
  },
);

t.test('relay queue: whole calls go before those of which a part is here', async (t) => {
  const { line, enter } = start({ ...MAXIMA, relayedConnections: 2 });
  const first = enter('a', '192.0.2.1').call;
  const second = enter('b', '192.0.2.2').call;
  const partial = enter('c', '192.0.2.3', 'unfinished').call;
  line.ready(partial);
  const whole = enter('d', '192.0.2.4').call;
  t.same(
    [first.state, second.state, partial.state, whole.state],
    ['running', 'running', 'gathering', 'gathering'],
  );
  first.end();
  t.same([partial.state, whole.state], ['gathering', 'running']);
  second.end();
  t.equal(partial.state, 'running');
});

t.test('relay queue: what it keeps of a call that left does not lead to the call', async (t) => {
  const { enter } = start({ ...MAXIMA, relayedConnections: 1 });
  const calls = [enter('a', '192.0.2.1').call, enter('b', '192.0.2.2').call];
  const entries = calls.map(({ entry }) => entry);
  for (const call of calls) call.end();
  t.same(
    entries.map((entry) => entry?.member),
    [undefined, undefined],
  );
  t.same(
    calls.map(({ entry }) => entry),
    [undefined, undefined],
  );
});

t.test('relay queue: a free share goes to the first in line that may have it', async (t) => {
  const { enter } = start();
  const running = Array.from({ length: 32 }, () => enter('a', '192.0.2.1', 'unfinished').call);
  const [next, later] = [
    enter('a', '192.0.2.1', 'unfinished').call,
    enter('a', '192.0.2.1', 'unfinished').call,
  ];
  t.same([next.state, later.state], ['new', 'new']);
  running[0]?.end();
  t.same([next.state, later.state], ['gathering', 'new']);
  later.end();
  running[1]?.end();
  t.equal(later.state, 'over', 'one that left is not admitted');
});

// covers S60
t.test('relay queue: one network holds half of the connections, another one gets the rest', async (t) => {
  const { enter } = start();
  const one = Array.from({ length: 8 }, (_, at) => enter(`a${at}`, '192.0.2.1').call);
  t.equal(one.filter(({ state }) => state === 'running').length, 4);
  const other = Array.from({ length: 4 }, (_, at) => enter(`b${at}`, '192.0.2.2').call);
  t.ok(other.every(({ state }) => state === 'running'));
  one[0]?.end();
  t.equal(one.filter(({ state }) => state === 'running').length, 4, 'its next one follows');
});

// covers S60
t.test('relay queue: any history keeps the shares, starves no caller and releases every lease', async (t) => {
  const step = fc.record({
    user: fc.constantFrom('a', 'b', 'c'),
    network: fc.constantFrom('192.0.2.1', '192.0.2.2', '2001:db8::1'),
    act: fc.constantFrom('enter', 'enter', 'unfinished', 'arrive', 'end'),
    at: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
      const { line, enter, held } = start();
      const calls: Call[] = [];
      for (const { user, network, act, at } of steps) {
        const chosen = calls[at % Math.max(1, calls.length)];
        if (act === 'enter' || act === 'unfinished') {
          const { call, refusal } = enter(user, network, act === 'enter' ? 'whole' : 'unfinished');
          if (refusal === undefined) calls.push(call);
        } else if (act === 'arrive' && chosen?.state === 'gathering') {
          chosen.isWhole = true;
          line.ready(chosen);
        } else if (act === 'end' && chosen !== undefined) {
          chosen.end();
          calls.splice(calls.indexOf(chosen), 1);
        }
        const of = (state: Call['state'], user?: string) =>
          calls.filter((call) => call.state === state && (user === undefined || call.name === user)).length;
        const [admitted = 0, waiting = 0, connections = 0] = held();
        if (admitted !== of('gathering') + of('running') || waiting !== of('new')) return false;
        if (connections !== of('running') || connections > 8) return false;
        for (const each of ['a', 'b', 'c'])
          if (of('gathering', each) + of('running', each) > 32) return false;
      }
      // Whatever was left behind, everything ends: each end makes room for the next.
      while (calls.length > 0) {
        const next = calls.find(({ state }) => state === 'running') ?? calls[0];
        next?.end();
        calls.splice(calls.indexOf(next as Call), 1);
      }
      return held().every((count) => count === 0);
    }),
    runs(300),
  );
  t.pass('300 histories');
});
