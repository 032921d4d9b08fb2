/** Verdicts of the judge, one rule at a time: every other condition of the turn is fulfilled. */
import t, { type Test } from 'tap';
import { type MailKey, type Operation, VERDICT } from '../../../../src/actors/runtime/journal/port.ts';
import { EVENTS_PARTITION } from '../../../../src/actors/runtime/ownership.ts';
import type { EntryClaim, EntryTurn } from '../../../../src/actors/runtime/replication/entry.ts';
import { isAllowed, type JudgeView, judge } from '../../../../src/actors/runtime/replication/judge.ts';

const WRITER = { node: 3, incarnation: 7 };
/** Last row of every actor. */
const LAST = 4;

/** Node 3 is in with incarnation 7 and owns everything; the mailbox has message 9; the key "taken" is of "other". */
function viewWith(different: Partial<JudgeView> = {}): JudgeView {
  return {
    isMember: (node, incarnation) => node === WRITER.node && incarnation === WRITER.incarnation,
    ownerOf: () => WRITER.node,
    ownerOfPartition: (partition) => (partition === 5 ? WRITER.node : 2),
    lastSeq: () => LAST,
    lookup: (index, key) => (index === 'publicKey' && key === 'taken' ? 'other' : undefined),
    hasMail: ({ seq }) => seq === 9,
    value: (key) => (key === 'present' ? 'old' : undefined),
    ...different,
  };
}

const append = (seq: number, id = 'a'): Operation => ({ op: 'append', kind: 'user', id, seq, row: [] });
const snapshot = (seq: number, id = 'a'): Operation => ({
  op: 'snapshot',
  kind: 'user',
  id,
  seq,
  fromSeq: 1,
  row: [],
});
const mailKey = (seq: number): MailKey => ({ toKind: 'user', toId: 'a', seq, fromKind: '', fromId: '' });
const removal = (seq: number): Operation => ({ op: 'mailRemove', key: mailKey(seq) });
const timerKey = { dueMs: 1, kind: 'user', id: 'a', name: 'n' };
const claim = (key: string, more: Partial<EntryClaim> = {}): EntryClaim => ({
  index: 'publicKey',
  key,
  owner: 'me',
  ...more,
});

function turn(operations: readonly Operation[], claims: readonly EntryClaim[] = []): EntryTurn {
  return { kind: 'user', id: 'a', operations, claims };
}

function expectVerdict(t: Test, expected: number, of: EntryTurn, view = viewWith(), message?: string): void {
  t.equal(judge(of, WRITER, view), expected, message ?? 'the verdict');
}

/** Every kind of turn that an actor writes. The rules about rows have nothing to say about the last four. */
const TURNS: Readonly<Record<string, EntryTurn>> = {
  'a row': turn([append(LAST + 1)]),
  'two rows': turn([append(LAST + 1), append(LAST + 2)]),
  'a snapshot': turn([snapshot(LAST)]),
  'a used message': turn([removal(9)]),
  'a claim': turn([], [claim('free')]),
  'a message': turn([{ op: 'mail', key: mailKey(1), row: {} }]),
  'a timer': turn([{ op: 'timer', key: timerKey, row: {} }]),
  'a removed timer': turn([{ op: 'timerRemove', key: timerKey }]),
  'a dead letter': turn([{ op: 'dead', key: { timeMs: 1, kind: 'user', id: 'a', seq: 1 }, row: {} }]),
};

for (const [name, of] of Object.entries(TURNS)) {
  t.test(`judge: ${name} of the owner is applied`, async (t) => expectVerdict(t, VERDICT.applied, of));

  t.test(`judge: ${name} of a node that does not own the actor is fenced`, async (t) => {
    const asked: string[] = [];
    const ownerOf = (kind: string, id: string) => {
      asked.push(`${kind} ${id}`);
      return 2;
    };
    expectVerdict(t, VERDICT.fenced, of, viewWith({ ownerOf }));
    t.same(asked, ['user a'], 'it is asked of this actor');
  });

  t.test(
    `judge: ${name} of a node that is not a member, or has another incarnation, is fenced`,
    async (t) => {
      expectVerdict(t, VERDICT.fenced, of, viewWith({ isMember: () => false }));
      t.equal(judge(of, { ...WRITER, incarnation: 6 }, viewWith()), VERDICT.fenced);
      t.equal(judge(of, { ...WRITER, incarnation: 8 }, viewWith()), VERDICT.fenced);
    },
  );
}

t.test('judge: the first row of an actor is fenced too when another node owns the actor', async (t) => {
  const view = viewWith({ lastSeq: () => 0 });
  expectVerdict(t, VERDICT.applied, turn([append(1)]), view);
  expectVerdict(t, VERDICT.fenced, turn([append(1)]), { ...view, ownerOf: () => 2 });
});

t.test('judge: a row is stale unless it follows the last one', async (t) => {
  for (const seq of [LAST - 1, LAST, LAST + 2]) expectVerdict(t, VERDICT.stale, turn([append(seq)]));
  expectVerdict(t, VERDICT.stale, turn([append(LAST + 1), append(LAST + 1)]), viewWith(), 'the same twice');
  expectVerdict(t, VERDICT.stale, turn([append(LAST + 1), append(LAST + 3)]), viewWith(), 'one left out');
});

t.test('judge: a snapshot is stale unless it is of the last row', async (t) => {
  for (const seq of [LAST - 1, LAST + 1]) expectVerdict(t, VERDICT.stale, turn([snapshot(seq)]));
  expectVerdict(
    t,
    VERDICT.applied,
    turn([append(LAST + 1), snapshot(LAST + 1)]),
    viewWith(),
    'of its own row',
  );
  expectVerdict(t, VERDICT.stale, turn([append(LAST + 1), snapshot(LAST)]), viewWith(), 'of the row before');
});

t.test('judge: a turn that uses up a message is stale when the message is not there', async (t) => {
  expectVerdict(t, VERDICT.stale, turn([removal(8)]));
  expectVerdict(t, VERDICT.stale, turn([append(LAST + 1), removal(8)]));
  const asked: MailKey[] = [];
  const hasMail = (key: MailKey) => {
    asked.push(key);
    return true;
  };
  expectVerdict(t, VERDICT.applied, turn([append(LAST + 1), removal(8)]), viewWith({ hasMail }));
  t.same(asked, [mailKey(8)]);
});

t.test('judge: rows of another actor are refused', async (t) => {
  for (const operation of [append(LAST + 1, 'b'), snapshot(LAST, 'b')])
    expectVerdict(t, VERDICT.refused, turn([operation]));
  expectVerdict(t, VERDICT.refused, { ...turn([append(LAST + 1)]), kind: 'app' });
});

t.test('judge: the verdict names the first claim that is not allowed', async (t) => {
  const claims = [claim('free'), claim('taken'), claim('taken', { owner: null, replaces: 'me' })];
  expectVerdict(t, VERDICT.conflict + 1, turn([append(LAST + 1)], claims));
  expectVerdict(t, VERDICT.conflict, turn([append(LAST + 1)], claims.slice(1)));
  expectVerdict(t, VERDICT.stale, turn([append(LAST)], claims), viewWith(), 'rows come first');
});

t.test('judge: a claim sees what the claims before it have taken and freed', async (t) => {
  const freed = claim('taken', { owner: null, replaces: 'other' });
  expectVerdict(t, VERDICT.applied, turn([], [freed, claim('taken')]));
  expectVerdict(t, VERDICT.conflict + 1, turn([], [claim('free'), claim('free', { owner: 'other' })]));
  expectVerdict(t, VERDICT.conflict + 2, turn([], [freed, claim('taken'), freed]));
  const elsewhere = claim('free', { index: 'contact', owner: 'other' });
  expectVerdict(t, VERDICT.applied, turn([], [claim('free'), elsewhere]), viewWith(), 'each index alone');
});

t.test('judge: who may take and free a name', async (t) => {
  const cases: [EntryClaim, string | undefined, boolean][] = [
    [claim('k'), undefined, true],
    [claim('k'), 'me', true],
    [claim('k'), 'other', false],
    [claim('k', { replaces: 'other' }), 'other', true],
    [claim('k', { replaces: 'other' }), 'third', false],
    [claim('k', { replaces: 'other' }), undefined, false],
    [claim('k', { owner: null }), 'other', true],
    [claim('k', { owner: null }), undefined, true],
    [claim('k', { owner: null, replaces: 'me' }), 'me', true],
    [claim('k', { owner: null, replaces: 'me' }), 'other', false],
  ];
  for (const [of, present, isFine] of cases)
    t.equal(isAllowed(of, present), isFine, `${JSON.stringify(of)} over ${present}`);
});

/** Rows of no actor. */
const ofNone = (
  operations: readonly Operation[],
  partition = '',
  claims: readonly EntryClaim[] = [],
): EntryTurn => ({ kind: '', id: partition, operations, claims });
const value = (key: string): Operation => ({ op: 'meta', key, row: 1 });
const once: Operation = { op: 'metaOnce', key: 'k', row: 1 };

t.test('judge: rows of no actor have neither claims nor rows of actors, and need a member', async (t) => {
  for (const partition of ['', '5']) {
    expectVerdict(t, VERDICT.applied, ofNone([once], partition), viewWith({ ownerOf: () => 2 }));
    expectVerdict(t, VERDICT.fenced, ofNone([once], partition), viewWith({ isMember: () => false }));
    for (const operation of [append(LAST + 1), snapshot(LAST)])
      expectVerdict(t, VERDICT.refused, ofNone([once, operation], partition));
    expectVerdict(t, VERDICT.refused, ofNone([once], partition, [claim('free')]));
  }
});

// covers C18
t.test('judge: rows of a partition are those of its owner at that position', async (t) => {
  const trim: Operation = { op: 'auditTrim', ring: 'calls', rows: 1 };
  expectVerdict(t, VERDICT.applied, ofNone([trim, once], '5'));
  for (const partition of ['6', '256', 'none', '-1'])
    expectVerdict(t, VERDICT.fenced, ofNone([trim, once], partition), viewWith(), partition);
});

t.test('judge: a value of a partition replaces the one that its writer has seen, or all falls', async (t) => {
  const values: [Operation, number][] = [
    [{ op: 'metaOnce', key: 'present', row: 1, was: 'old' }, VERDICT.applied],
    [{ op: 'metaOnce', key: 'present', row: 1, was: 'older' }, VERDICT.stale],
    [{ op: 'metaOnce', key: 'present', row: 1 }, VERDICT.stale],
    [{ op: 'metaOnce', key: 'k', row: 1, was: 'old' }, VERDICT.stale],
    [value('k'), VERDICT.refused],
  ];
  for (const [operation, verdict] of values)
    expectVerdict(t, verdict, ofNone([once, operation], '5'), viewWith(), JSON.stringify(operation));
});

const OF_ANY: readonly Operation[] = [
  { op: 'eventAccept', identity: 'i', row: 1 },
  { op: 'eventPublish', row: 1 },
];
const OF_OWNER: readonly Operation[] = [
  { op: 'eventRelease', arrival: 1 },
  { op: 'eventRemove', sequence: 1, identity: null },
];
const DECIDED: readonly Operation[] = [
  { op: 'eventWait', arrival: 1, identity: 'i', row: 1 },
  { op: 'eventEnter', arrival: null, sequence: 1, row: 1 },
  { op: 'eventLeave', sequence: 1, identity: null },
];

t.test(
  'judge: events come from any member, and are released and removed by the owner of their log',
  async (t) => {
    const ownsEvents = viewWith({
      ownerOfPartition: (each) => (each === EVENTS_PARTITION ? WRITER.node : 2),
    });
    const ownsOthers = viewWith({
      ownerOfPartition: (each) => (each === EVENTS_PARTITION ? 2 : WRITER.node),
    });
    const home = String(EVENTS_PARTITION);
    const other = String((EVENTS_PARTITION + 1) % 256);
    for (const operation of OF_ANY)
      expectVerdict(t, VERDICT.applied, ofNone([operation]), ownsOthers, operation.op);
    for (const operation of OF_OWNER) {
      expectVerdict(t, VERDICT.refused, ofNone([operation]), ownsEvents, `${operation.op} of no partition`);
      expectVerdict(t, VERDICT.fenced, ofNone([operation], home), ownsOthers, `${operation.op} of another`);
    }
    for (const operation of [...OF_ANY, ...OF_OWNER]) {
      expectVerdict(
        t,
        VERDICT.applied,
        ofNone([operation], home),
        ownsEvents,
        `${operation.op} of the owner`,
      );
      expectVerdict(t, VERDICT.refused, ofNone([operation], other), ownsOthers, `${operation.op} elsewhere`);
    }
  },
);

t.test('judge: no row says what a request of events came to, and no actor writes events', async (t) => {
  const view = viewWith({ ownerOfPartition: () => WRITER.node });
  for (const operation of DECIDED)
    for (const partition of ['', String(EVENTS_PARTITION)])
      expectVerdict(t, VERDICT.refused, ofNone([operation], partition), view, operation.op);
  for (const operation of [...OF_ANY, ...OF_OWNER, ...DECIDED])
    expectVerdict(t, VERDICT.refused, turn([append(LAST + 1), operation]), view, operation.op);
});

t.test('judge: of rows of no partition any member writes what no other one can disturb', async (t) => {
  const mail: Operation = { op: 'mail', key: mailKey(1), row: {} };
  const removed: Operation = { op: 'deadRemove', key: { timeMs: 1, kind: 'user', id: 'a', seq: 1 } };
  for (const operation of [mail, once, removed, value('tickFloor.3'), value('kindVersions')])
    expectVerdict(t, VERDICT.applied, ofNone([operation]), viewWith(), operation.op);
  const refused: Operation[] = [
    value('k'),
    value('tickFloor.2'),
    value('tickFloor'),
    { op: 'auditTrim', ring: 'calls', rows: 1 },
    { op: 'audit', ring: 'calls', row: {} },
  ];
  for (const operation of refused)
    expectVerdict(t, VERDICT.refused, ofNone([once, operation]), viewWith(), operation.op);
});
