/** An account removed at one node is gone at the others in the very next request, and from the rows of all of them. */
import t from 'tap';
import { expectOk, logIn, request, signUp } from '../../../kit/agent.ts';
import { textsInRows } from '../../support/actors/journal-rows.ts';
import { asked, nodesTest, resultOf, type ThreeNodes } from '../../support/cluster/three-nodes.ts';
import { arrival } from '../../support/outbox.ts';

t.setTimeout(240_000);

const KEYS = '/auth/v1/keys/user_keys';

const phoneOf = (turn: number) => `+49170123456${turn}`;

// covers C1
nodesTest(
  'an account removed at one node is gone at the others, and its names from all rows',
  async (t, { cluster, nodes: [a, b, c] }) => {
    for (const [turn, order] of [[a, b, c] as const, [b, c, a] as const, [c, a, b] as const].entries()) {
      const [at, second, third] = order;
      const phone = phoneOf(turn);
      const nickname = `Countess ${turn} of Lovelace`;
      const person = await signUp(second.url);
      const headers = { Cookie: person.cookie };
      await resultOf(second, person.cookie, '/auth/v1/account', { nickname });
      const codeAsked = await request(`${third.url}/auth/v1/login_phone`, { headers, body: { phone } });
      const challengeId = expectOk('login_phone', codeAsked).json['result']?.['challengeId'];
      const code = await arrival(cluster.sandbox?.url, phone);
      await resultOf(third, person.cookie, '/auth/v1/account/contacts/add', { challengeId, code });
      const exported = await request(`${at.url}/auth/v1/account/export`, { headers });
      t.match(
        exported.json,
        { profile: { nickname, contacts: [{ address: phone }] } },
        `export at ${at.name}`,
      );
      await resultOf(at, person.cookie, '/auth/v1/account/remove', {});
      for (const node of [second, third, at]) {
        t.equal((await asked(node, person.cookie, KEYS)).status, 401, `session at ${node.name}`);
        t.equal((await logIn(node.url, person.key)).status, 401, `log-in at ${node.name}`);
      }
      const again = await signUp(third.url, person.key);
      t.not(again.userId, person.userId, 'the key opens another account');
      await forgotten(order, [phone, nickname]);
    }
  },
);

/** Messages follow the answer: each node has applied them when its rows no longer name the person. */
async function forgotten(nodes: ThreeNodes['nodes'], texts: readonly string[]): Promise<void> {
  for (const { dataPath } of nodes) while ((await textsInRows(dataPath, texts)).length > 0);
}
