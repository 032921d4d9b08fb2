/** Which actors answer at once after a takeover, and which wait until every node has applied their last gated turn. */
import t from 'tap';
import { GatedTurns } from '../../../../src/actors/runtime/log/gated-turns.ts';

/** Every other member has applied the rows up to `everywhere`. */
function gatedTurnsAt(start: number, everywhere = start) {
  const nodes = { everywhere };
  return { nodes, turns: new GatedTurns((position) => position <= nodes.everywhere, start) };
}

t.test('gated turns: an actor waits for its newest one, until every node has it', async (t) => {
  const { nodes, turns } = gatedTurnsAt(10);
  turns.applied('user', 'a', 11);
  turns.applied('user', 'b', 12);
  turns.applied('user', 'a', 13);
  t.equal(turns.positionOf('user', 'a'), 13);
  t.equal(turns.positionOf('user', 'b'), 12);
  nodes.everywhere = 12;
  t.equal(turns.positionOf('user', 'a'), 13);
  t.equal(turns.positionOf('user', 'b'), undefined);
  nodes.everywhere = 13;
  t.equal(turns.positionOf('user', 'a'), undefined);
});

t.test('gated turns: an actor without one does not wait', async (t) => {
  const { turns } = gatedTurnsAt(10);
  turns.applied('user', 'a', 11);
  t.equal(turns.positionOf('user', 'b'), undefined);
  t.equal(turns.positionOf('app', 'a'), undefined, 'another kind');
});

t.test('gated turns: every actor waits for what was applied before the process began', async (t) => {
  const { nodes, turns } = gatedTurnsAt(10, 9);
  t.equal(turns.positionOf('user', 'a'), 10);
  turns.applied('user', 'b', 11);
  t.equal(turns.positionOf('user', 'b'), 11);
  nodes.everywhere = 10;
  t.equal(turns.positionOf('user', 'a'), undefined);
  t.equal(turns.positionOf('user', 'b'), 11);
});

t.test('gated turns: beyond 16,384 actors all wait for those that are forgotten', async (t) => {
  const { nodes, turns } = gatedTurnsAt(0);
  for (let position = 1; position <= 16_384; position += 1) turns.applied('user', String(position), position);
  t.equal(turns.positionOf('user', 'other'), undefined);
  turns.applied('user', 'one more', 16_385);
  t.equal(turns.positionOf('user', 'other'), 1);
  t.equal(turns.positionOf('user', '1'), 1);
  t.equal(turns.positionOf('user', '2'), 2);
  nodes.everywhere = 1;
  t.equal(turns.positionOf('user', 'other'), undefined);
});
