/**
 * Actors after a takeover: those that answer at once, and those that wait until every node has applied their last gated
 * turn.
 */
import t from 'tap';
import { GatedTurns } from '../../../../src/actors/runtime/replication/gated-turns.ts';

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

t.test('gated turns: many that no node lacks are forgotten, and actors with others still wait', async (t) => {
  const { nodes, turns } = gatedTurnsAt(0);
  turns.applied('user', 'waits', 20_000);
  for (let position = 1; position < 20_000; position += 1) {
    nodes.everywhere = position;
    turns.applied('user', String(position), position);
  }
  t.equal(turns.positionOf('user', '19999'), undefined);
  t.equal(turns.positionOf('user', 'other'), undefined);
  t.equal(turns.positionOf('user', 'waits'), 20_000);
});

t.test('gated turns: when more than 8,192 actors wait, every actor waits for all of them', async (t) => {
  const { nodes, turns } = gatedTurnsAt(0);
  let newest = 0;
  while (turns.positionOf('user', 'other') === undefined && newest < 20_000) {
    newest += 1;
    turns.applied('user', String(newest), newest);
  }
  t.ok(newest > 8_192 && newest <= 2 * 8_192, `${newest} are kept`);
  t.equal(turns.positionOf('user', 'other'), newest);
  t.equal(turns.positionOf('user', '7'), newest);
  nodes.everywhere = newest - 1;
  t.equal(turns.positionOf('user', 'other'), newest);
  nodes.everywhere = newest;
  t.equal(turns.positionOf('user', 'other'), undefined);
  turns.applied('user', '7', newest + 1);
  t.equal(turns.positionOf('user', '7'), newest + 1);
  t.equal(turns.positionOf('user', 'other'), undefined);
});
