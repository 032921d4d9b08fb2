/** The state while a batch of rows is judged: the store, with the turns of the batch before it on top. */
import t from 'tap';
import { MemoryJournal } from '../../../../kit/journal/memory.ts';
import {
  type MailKey,
  MESSAGES_OF_ROW_MAX,
  type Operation,
} from '../../../../src/actors/runtime/journal/port.ts';
import { BatchView } from '../../../../src/actors/runtime/replication/batch-view.ts';
import type { EntryTurn } from '../../../../src/actors/runtime/replication/entry.ts';
import { Members } from '../../../../src/actors/runtime/replication/members.ts';
import { commitRows } from '../../../support/actors/commit-rows.ts';

const key = (seq: number): MailKey => ({ toKind: 'user', toId: 'a', seq, fromKind: 'app', fromId: 'b' });
const turn = (operations: readonly Operation[], claims: EntryTurn['claims'] = []): EntryTurn => ({
  kind: 'user',
  id: 'a',
  operations,
  claims,
});

async function viewOver(rows: readonly Operation[]): Promise<BatchView> {
  const store = new MemoryJournal({ immediate: queueMicrotask });
  await commitRows(store, rows);
  return new BatchView(store, new Members(), 0n);
}

t.test('batch: a message is there from the store, until a turn of the batch uses it up', async (t) => {
  const view = await viewOver([{ op: 'mail', key: key(7), row: { type: 'm' } }]);
  t.equal(view.hasMail(key(7)), true);
  t.equal(view.hasMail(key(8)), false);
  view.begin(3, 0n);
  view.apply(turn([{ op: 'mailRemove', key: key(7) }]));
  t.equal(view.hasMail(key(7)), false);
});

t.test('batch: a message of the batch is there under the number of its row', async (t) => {
  const view = await viewOver([]);
  view.begin(3, 0n);
  view.apply(turn([{ op: 'mail', key: key(1), row: { type: 'm' } }]));
  view.apply(turn([{ op: 'mail', key: key(1), row: { type: 'm' } }]));
  const first = 3 * MESSAGES_OF_ROW_MAX;
  t.equal(view.hasMail(key(1)), false, 'the number that its sender gave means nothing');
  t.equal(view.hasMail(key(first)), true);
  t.equal(view.hasMail(key(first + 1)), true);
  t.equal(view.hasMail(key(first + 2)), false);
  view.begin(4, 0n);
  view.apply(turn([{ op: 'mailRemove', key: key(first) }]));
  t.equal(view.hasMail(key(first)), false);
  t.equal(view.hasMail(key(first + 1)), true);
});

t.test('batch: rows and names of turns before are seen, those of the store otherwise', async (t) => {
  const view = await viewOver([
    { op: 'append', kind: 'user', id: 'a', seq: 1, row: [1, [], [], []] },
    { op: 'index', index: 'publicKey', key: 'x', owner: 'a' },
  ]);
  t.equal(view.lastSeq('user', 'a'), 1);
  t.equal(view.lastSeq('user', 'b'), 0);
  view.begin(2, 0n);
  const row = { kind: 'user', id: 'a', row: [1, [], [], []] };
  view.apply(
    turn(
      [{ op: 'append', seq: 2, ...row }],
      [
        { index: 'publicKey', key: 'x', owner: null },
        { index: 'publicKey', key: 'y', owner: 'a' },
      ],
    ),
  );
  t.equal(view.lastSeq('user', 'a'), 2);
  t.equal(view.lookup('publicKey', 'x'), undefined);
  t.equal(view.lookup('publicKey', 'y'), 'a');
});

t.test('batch: a value is replaced as often as each writer has seen the one before', async (t) => {
  const view = await viewOver([{ op: 'metaOnce', key: 'k', row: 'stored' }]);
  const replace = (row: string, was?: string) =>
    view.apply(turn([{ op: 'metaOnce', key: 'k', row, ...(was !== undefined && { was }) }])).operations
      .length;
  view.begin(3, 0n);
  t.equal(view.value('k'), 'stored');
  t.equal(replace('second'), 0, 'it is not the first');
  t.equal(replace('second', 'stored'), 1);
  t.equal(replace('third', 'stored'), 0, 'another one was before it');
  t.equal(replace('third', 'second'), 1, 'as on a node that stores each row by itself');
  t.equal(view.value('k'), 'third');
});

t.test('batch: a row with more messages and events than it has numbers is refused as a whole', async (t) => {
  const view = await viewOver([]);
  const accept = (identity: string): Operation => ({ op: 'eventAccept', identity, row: [] });
  const mail: Operation = { op: 'mail', key: key(1), row: { type: 'm' } };
  const last = MESSAGES_OF_ROW_MAX - 1;
  view.begin(3, 0n);
  view.apply(turn(Array.from({ length: last }, () => mail)));
  t.throws(() => view.apply(turn([accept('a'), accept('b')])), RangeError);
  t.match(view.apply(turn([accept('a')])).operations, [
    { op: 'eventWait', arrival: 3 * MESSAGES_OF_ROW_MAX + last },
  ]);
});
