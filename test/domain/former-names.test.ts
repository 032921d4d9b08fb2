import t from 'tap';
import { readFormerNames } from '../../src/domain/former-names.ts';

const NAMES = { id: 'appId' };

t.test('former names: read under the name of today; both names must agree', async (t) => {
  const passes: [object, object][] = [
    [
      { appId: '1', x: 2 },
      { appId: '1', x: 2 },
    ],
    [
      { id: '1', x: 2 },
      { appId: '1', x: 2 },
    ],
    [{ id: 1, appId: '1' }, { appId: '1' }],
    [{ id: null, appId: '1' }, { appId: '1' }],
    [{ id: '1', appId: null }, { appId: '1' }],
    [{ id: null }, { appId: null }],
    [{ id: 'a' }, { appId: 'a' }],
    [{}, {}],
  ];
  for (const [sent, fields] of passes)
    t.same(readFormerNames(NAMES, { ...sent }), { ok: true, fields }, JSON.stringify(sent));
  for (const sent of [
    { id: '1', appId: '2' },
    { id: [], appId: '2' },
  ])
    t.same(readFormerNames(NAMES, sent), { ok: false, fault: 'appId and id, its former name, differ' });
  const own = JSON.parse('{"id":"1","__proto__":{"appId":"9"}}') as Record<string, unknown>;
  const read = readFormerNames(NAMES, own);
  t.match(read, { ok: true, fields: { appId: '1' } }, 'own fields alone count');
  t.same(own['id'], '1', 'what was sent stays as it is');
});
