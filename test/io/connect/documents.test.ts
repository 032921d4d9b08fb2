import t from 'tap';
import { stopAfter } from '../../../kit/close-after.ts';
import type { DocumentClient } from '../../../src/io/connect/documents.ts';
import type { Account } from '../../support/account.ts';
import { startConnect } from '../../support/connect.ts';
import { askRequest, authorizeQuery, hostClient } from '../../support/hosts.ts';

/** A host that answers nothing until `release`, which waits for so many fetches first. */
function silentHost() {
  const waiting: (() => void)[] = [];
  const client: DocumentClient = {
    async request() {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return { kind: 'broken', reason: 'closed', isSent: true, wasClosed: false };
    },
    close: () => undefined,
  };
  return {
    client,
    async reached(count: number) {
      while (waiting.length < count) await new Promise<void>((resolve) => setImmediate(resolve));
    },
    release() {
      for (const resolve of waiting.splice(0)) resolve();
    },
  };
}

// covers S91
t.test('document: of fetches at once an account has two, a network a quarter of all', async (t) => {
  const host = silentHost();
  const { client: documentClient } = host;
  const fixture = stopAfter(t, await startConnect({ documents: { client: documentClient } }));
  const { url, owner, admin, cookieOf } = fixture;
  const others = [await fixture.signUp(), await fixture.signUp()];
  const ask = (account: Account, name: string) => {
    const client = hostClient(`https://host.example/${name}.json`, 'https://host.example/cb');
    return askRequest(url, cookieOf(account), authorizeQuery(client));
  };
  const asked = [owner, admin, ...others].flatMap((account) =>
    ['one', 'two'].map((name) => ask(account, `${account.userId}/${name}`)),
  );
  await host.reached(8);
  t.equal((await ask(owner, 'third')).status, 429, 'a third of one account');
  const last = await fixture.signUp();
  t.equal((await ask(last, 'ninth')).status, 429, 'a ninth of one network');
  host.release();
  for (const answer of await Promise.all(asked)) t.equal(answer.status, 200);
  const later = ask(last, 'later');
  await host.reached(1);
  host.release();
  t.equal((await later).status, 200, 'what ended is given back');
});
