/** Breakers: what opens one, what does not, the probe, and a simple model beside it. */
import fc from 'fast-check';
import t from 'tap';
import {
  BREAKER_FAILURES_MAX,
  BREAKER_OPEN_MS,
  BREAKER_UNANSWERED_MAX,
  type CallResult,
  createBreakers,
} from '../../../src/io/http-client/breaker.ts';
import { runs } from '../../support/depth.ts';

type Outcome = readonly [verdict: CallResult, network: string];

function after(outcomes: readonly Outcome[]): boolean {
  const breakers = createBreakers(() => 0);
  for (const [verdict, network] of outcomes) {
    const permit = breakers.enter('e', network, true);
    if (permit === undefined) return true;
    breakers.settle(permit, verdict);
  }
  return breakers.refuses('e');
}

const times = (count: number, ...outcome: Outcome): Outcome[] => Array.from({ length: count }, () => outcome);

const CASES: readonly (readonly [name: string, outcomes: readonly Outcome[], opens: boolean])[] = [
  ['five failures of the module, one caller', times(5, 'failed', 'a'), true],
  ['four failures', times(4, 'failed', 'a'), false],
  [
    'four failures, an answer, four more',
    [...times(4, 'failed', 'a'), ['worked', 'a'], ...times(4, 'failed', 'a')],
    false,
  ],
  ['nineteen time-outs of one network', times(19, 'timedOut', 'a'), false],
  ['twenty calls in a row without an answer', times(20, 'timedOut', 'a'), true],
  [
    'nineteen time-outs of one network, one answer to another, and nineteen again',
    [...times(19, 'timedOut', 'a'), ['worked', 'b'], ...times(19, 'timedOut', 'a')],
    false,
  ],
  ['five time-outs of two networks', [...times(4, 'timedOut', 'a'), ['timedOut', 'b']], true],
  [
    'three failures and two time-outs of one network',
    [...times(3, 'failed', 'a'), ...times(2, 'timedOut', 'b')],
    false,
  ],
  [
    'three failures and two time-outs of two networks',
    [...times(3, 'failed', 'a'), ['timedOut', 'b'], ['timedOut', 'c']],
    true,
  ],
  ['calls that never went out', times(100, 'released', 'a'), false],
];

// covers R47 S61
t.test('breakers: what opens one', async (t) => {
  for (const [name, outcomes, opens] of CASES) t.equal(after(outcomes), opens, name);
});

// covers S62
t.test(
  'breakers: the probe is one whole call; a part of one is refused, its failure opens again',
  async (t) => {
    let nowMs = 0;
    const breakers = createBreakers(() => nowMs);
    for (const [verdict, network] of times(5, 'failed', 'a')) {
      const permit = breakers.enter('e', network, true);
      if (permit !== undefined) breakers.settle(permit, verdict);
    }
    t.equal(breakers.enter('e', 'a', true), undefined);
    nowMs = BREAKER_OPEN_MS;
    t.equal(breakers.refuses('e'), false);
    t.equal(breakers.enter('e', 'a', false), undefined, 'not whole');
    const probe = breakers.enter('e', 'a', true);
    t.equal(probe?.probe, true);
    t.equal(breakers.enter('e', 'b', true), undefined, 'one at a time');
    if (probe !== undefined) breakers.settle(probe, 'timedOut');
    t.equal(breakers.refuses('e'), true, 'a probe that times out opens it again, for any caller');
    nowMs += BREAKER_OPEN_MS;
    const second = breakers.enter('e', 'b', true);
    if (second !== undefined) breakers.settle(second, 'worked');
    t.equal(breakers.enter('e', 'a', false)?.probe, false, 'closed');
  },
);

/** The rules as sentences, over the outcomes since the last answer. */
function modelOpens(run: readonly Outcome[]): boolean {
  const timeouts = run.filter(([verdict]) => verdict === 'timedOut');
  const networks = new Set(timeouts.map(([, network]) => network));
  const ofModule = run.length - timeouts.length + (networks.size > 1 ? timeouts.length : 0);
  return ofModule >= BREAKER_FAILURES_MAX || run.length >= BREAKER_UNANSWERED_MAX;
}

// covers R47 S61
t.test('breakers: every history ends as in the model', async (t) => {
  const outcome = fc.tuple(
    fc.constantFrom<CallResult>('worked', 'failed', 'timedOut', 'timedOut', 'timedOut', 'released'),
    fc.constantFrom('a', 'a', 'a', 'b'),
  );
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 80, size: 'max' }), (outcomes) => {
      let nowMs = 0;
      const breakers = createBreakers(() => nowMs);
      let run: Outcome[] = [];
      let isOpen = false;
      for (const [verdict, network] of outcomes) {
        if (isOpen) nowMs += BREAKER_OPEN_MS;
        const permit = breakers.enter('e', network, true);
        if (permit === undefined || permit.probe !== isOpen) return false;
        breakers.settle(permit, verdict);
        if (verdict === 'released') continue;
        run = verdict === 'worked' ? [] : [...run, [verdict, network]];
        isOpen = verdict !== 'worked' && (isOpen || modelOpens(run));
        if (breakers.refuses('e') !== isOpen) return false;
      }
      return true;
    }),
    runs(2_000),
  );
  t.pass('all histories');
});
