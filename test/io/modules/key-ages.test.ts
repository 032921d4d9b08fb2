/** Ages of the keys of modules: since when the gateway knows each, over starts, changes and a full disk. */
import t from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { openKeyAges } from '../../../src/io/modules/key-ages.ts';
import { createTestActors } from '../../support/actors/actors.ts';
import { CIPHER } from '../../support/admin.ts';

const WALLET = { name: 'wallet', key: 'wallet-key-0123456789' };

t.test(
  'key ages: a key keeps its age over starts, another one begins anew, without a key none',
  async (t) => {
    const { administration } = createTestActors({ kinds: [user] }).system;
    const ages = async (modules: { name: string; key: string | undefined }[], nowMs: number) => [
      ...(await openKeyAges(administration, CIPHER, modules, nowMs)),
    ];
    const polled = { name: 'market', key: undefined };
    t.same(await ages([WALLET, polled], 1_000), [['wallet', 1_000]]);
    const chat = { name: 'chat', key: WALLET.key };
    t.same(
      await ages([WALLET, chat], 2_000),
      [
        ['wallet', 1_000],
        ['chat', 2_000],
      ],
      'the next start, with one more module',
    );
    t.same(await ages([{ ...WALLET, key: 'wallet-key-9876543210' }], 3_000), [['wallet', 3_000]]);
    t.same(await ages([chat], 4_000), [['chat', 4_000]], 'one that was left out is forgotten');
    t.notMatch(JSON.stringify(administration.metaGet('moduleKeys')), /wallet-key/);
  },
);

t.test('key ages: a journal that takes no writes does not stop the start', async (t) => {
  const full = {
    metaGet: () => undefined,
    metaReplace: async () => {
      throw new GatewayError('StorageFull');
    },
  };
  t.same([...(await openKeyAges(full, CIPHER, [WALLET], 5_000))], [['wallet', 5_000]]);
});
