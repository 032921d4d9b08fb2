/** Partitions of actors: that of the account or the application that they belong to. */
import fc from 'fast-check';
import t from 'tap';
import { homeOf } from '../../src/domain/partitions.ts';
import { runs } from '../support/depth.ts';

const id = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }).map(String);
const part = fc.stringMatching(/^[a-z0-9-]{1,20}$/);

// covers C2 C3
t.test(
  'homes: uploads and drafts live with their account, delivery logs with their application',
  async (t) => {
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(id, part, (owner, slot) => {
          const home = homeOf('user', owner);
          return ['upload', 'draft', 'deliveryLog'].every(
            (kind) => homeOf(kind, `${owner}.${slot}`) === home,
          );
        }),
        runs(),
      ),
    );
  },
);

t.test('homes: single actors of other kinds have homes of their own, in 0 to 255', async (t) => {
  const homes = ['settings', 'staff', 'codeDesk', 'uploadDesk', 'eventLog'].map((kind) =>
    homeOf(kind, 'all'),
  );
  t.ok(new Set(homes).size > 1, 'they spread');
  t.ok(homes.every((home) => Number.isInteger(home) && home >= 0 && home < 256));
});
