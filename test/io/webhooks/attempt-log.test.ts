/** The log line of a webhook attempt: what it holds, what it never holds, its bound, and when it is written. */
import fc from 'fast-check';
import t from 'tap';
import { anyCodePoint } from '../../../kit/code-points.ts';
import { MINUTE_MS, toIso } from '../../../src/domain/time.ts';
import { attemptLine, createAttemptLog, type LoggedAttempt } from '../../../src/io/webhooks/attempt-log.ts';
import { runs } from '../../support/depth.ts';
import { startRig } from '../../support/events/webhooks.ts';

const TIME = '2026-11-21T00:00:00.000Z';
/** Longest write that a pipe takes whole. */
const PIPE_BYTES = 4_096;
const NASTY = '\u0000"\\\u007f\u00e9\u2028😀'.repeat(500);

const FAILED: LoggedAttempt = {
  appId: '77',
  webhookId: 'msg_1',
  source: 'live',
  attempt: 2,
  eventIds: ['e1-5', 'e1-7'],
  events: 3,
  host: 'hook.example:443',
  result: { status: 503, failure: null, elapsedMs: 12 },
  state: 'failing',
  retryAtMs: Date.parse(TIME) + MINUTE_MS,
};
const DELIVERED: LoggedAttempt = {
  ...FAILED,
  result: { ...FAILED.result, status: 204 },
  state: 'active',
  retryAtMs: null,
};

t.test('attempt line: events, application, attempt, status or failure, duration, next try', async (t) => {
  t.strictSame(JSON.parse(attemptLine(FAILED, TIME)), {
    level: 'warn',
    time: TIME,
    msg: 'webhook attempt',
    appId: '77',
    webhookId: 'msg_1',
    source: 'live',
    attempt: 2,
    events: 3,
    firstEventId: 'e1-5',
    lastEventId: 'e1-7',
    host: 'hook.example:443',
    outcome: 'blocked',
    status: 503,
    durationMs: 12,
    state: 'failing',
    nextTry: '2026-11-21T00:01:00.000Z',
  });
  const unreachable = { ...FAILED, result: { status: null, failure: 'unreachable' as const, elapsedMs: 1 } };
  const line: unknown = JSON.parse(attemptLine(unreachable, TIME));
  t.match(line, { level: 'warn', outcome: 'blocked', failure: 'unreachable', durationMs: 1 });
  t.notOk(Object.hasOwn(line as object, 'status'), 'no status without an answer');
  const delivered: unknown = JSON.parse(attemptLine(DELIVERED, TIME));
  t.match(delivered, { level: 'info', outcome: 'delivered', status: 204, state: 'active' });
  t.notOk(Object.hasOwn(delivered as object, 'nextTry'), 'no next try after a delivery');
});

t.test('attempt line: one line of ASCII within 4 KiB, whatever the values are', async (t) => {
  const text = fc.oneof(fc.string({ unit: anyCodePoint, maxLength: 600 }), fc.constant(NASTY));
  const property = fc.property(text, text, text, (appId, id, host) => {
    const line = attemptLine({ ...FAILED, appId, webhookId: id, eventIds: [id, id], host }, TIME);
    JSON.parse(line);
    return line.length <= PIPE_BYTES && /^[\x20-\x7e]*\n$/.test(line);
  });
  t.doesNotThrow(() => fc.assert(property, runs(2_000)));
});

t.test('attempt log: Log.requests selects all attempts, those that did not deliver, or none', async (t) => {
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line) };
  const clock = () => Date.parse(TIME);
  for (const mode of ['all', 'errors'] as const) {
    const log = createAttemptLog(mode, sink, clock);
    log?.(DELIVERED);
    log?.(FAILED);
  }
  t.same(lines, [attemptLine(DELIVERED, TIME), attemptLine(FAILED, TIME), attemptLine(FAILED, TIME)]);
  t.equal(createAttemptLog('off', sink, clock), undefined);
});

t.test(
  'attempt log: each attempt once, with the stored next try; no path, query, body or answer',
  async (t) => {
    const rig = await startRig(t, []);
    await rig.register('77', { webhookUrl: 'https://hook77.example/secret-path?token=secret-query' });
    rig.receivers.answer = () => 503;
    rig.log.append({}, { note: 'secret-body' });
    await rig.settle();
    const retryAtMs = (await rig.webhook('77'))?.retryAtMs ?? 0;
    t.match(rig.attempts, [
      {
        appId: '77',
        source: 'live',
        attempt: 1,
        eventIds: ['e1-1', 'e1-1'],
        events: 1,
        host: 'hook77.example',
        result: { status: 503 },
        state: 'failing',
        retryAtMs,
      },
    ]);
    rig.receivers.answer = () => 200;
    await rig.actors.advance(MINUTE_MS);
    t.match(rig.attempts[1], { attempt: 2, result: { status: 200 }, state: 'active', retryAtMs: null });
    t.equal(rig.attempts.length, rig.receivers.got.length);
    t.equal(rig.attempts[1]?.webhookId, rig.attempts[0]?.webhookId);
    const text = rig.attempts.map((attempt) => attemptLine(attempt, toIso(rig.clock.nowMs))).join('');
    t.notMatch(text, /secret|said|ghk_|v1,/);
  },
);
