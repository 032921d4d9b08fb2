/** Objects that a group of writes keeps alive, and for how long. */
import t from 'tap';
import { CommitGroup } from '../../../src/actors/runtime/commit-group.ts';
import { ofNoActor } from '../../../src/actors/runtime/journal/port.ts';

interface Writer {
  dirty: CommitGroup | undefined;
  awaited: CommitGroup | undefined;
}

t.test('group: who wrote remembers it until it is on disk, and then nothing is kept', (t) => {
  const [early, late] = [new CommitGroup(), new CommitGroup()];
  const [one, both]: Writer[] = [
    { dirty: undefined, awaited: undefined },
    { dirty: undefined, awaited: undefined },
  ];
  if (one === undefined || both === undefined) throw new Error('no writers');
  early.writtenBy(one, false);
  early.writtenBy(both, true);
  early.writtenBy(both, false);
  early.turns.push(ofNoActor([{ op: 'index', index: 'publicKey', key: 'a', owner: null }]));
  late.writtenBy(both, false);
  t.equal(one.dirty, early);
  t.equal(both.dirty, late, 'the newest');
  t.equal(one.awaited, undefined, 'no answer waits for it');
  t.equal(both.awaited, early, 'unawaited writes do not move it');
  early.forget();
  t.equal(one.dirty, undefined);
  t.equal(both.dirty, late, 'what it wrote later is not on disk yet');
  t.equal(both.awaited, undefined);
  t.strictSame(early.turns, []);
  late.forget();
  t.equal(both.dirty, undefined);
  t.end();
});
