/** The list of sessions against a Map: any order of opening, changing and ending. */
import fc from 'fast-check';
import t from 'tap';
import { findById, withoutIds, withRecord } from '../../../src/actors/accounts/id-list.ts';
import type { SessionRecord } from '../../../src/actors/accounts/user-types.ts';
import { runs } from '../../support/depth.ts';

function session(id: string, keyId: string): SessionRecord {
  return {
    id,
    kind: 'mcp',
    loginType: 'McpBasic',
    keyId,
    appId: null,
    hash: id,
    createdMs: 0,
    lastSeenMs: 0,
    expiresMs: 0,
    ip: '',
    userAgent: '',
  };
}

const id = fc
  .oneof(
    fc.nat({ max: 120 }),
    fc.nat({ max: 20 }).map((low) => 10 ** 15 + low),
  )
  .map(String);

t.test('session list: finds, changes and drops what a Map would, in the order of the ids', (t) => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('put' as const), id, keyId: fc.constantFrom('a', 'b') }),
    fc.record({ do: fc.constant('drop' as const), ids: fc.array(id, { maxLength: 3 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), id, (steps, wanted) => {
      let list: readonly SessionRecord[] = [];
      const map = new Map<string, SessionRecord>();
      for (const next of steps) {
        const before = [...list];
        const given = list;
        if (next.do === 'put') {
          const record = session(next.id, next.keyId);
          list = withRecord(list, record);
          map.set(next.id, record);
        } else {
          list = withoutIds(list, next.ids);
          for (const dropped of next.ids) map.delete(dropped);
        }
        if (given.length !== before.length || given.some((each, place) => each !== before[place]))
          return false;
      }
      const ordered = [...map.values()].sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
      const same = list.length === ordered.length && list.every((each, place) => each === ordered[place]);
      return same && findById(list, wanted) === map.get(wanted);
    }),
    runs(5_000),
  );
  t.end();
});
