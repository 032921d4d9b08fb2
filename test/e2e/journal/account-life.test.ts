import http from 'node:http';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { expectOk, logIn, request, signUp } from '../../../kit/agent.ts';
import { listenFor } from '../../../kit/http.ts';
import { launch } from '../../../kit/launch.ts';
import { textsInRows } from '../../support/actors/journal-rows.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { arrival } from '../../support/outbox.ts';
import { until } from '../../support/until.ts';

t.setTimeout(240_000);

const PHONE = '+491701234567';
const NICKNAME = 'Countess of Lovelace';
const SHOP = { name: 'The shop of Ada', url: 'https://shop-of-ada.example' };

/** A module that keeps what it is notified of removed accounts, and confirms it once `confirms` is set. */
async function startShop(t: Test) {
  const shop = { told: [] as string[], confirms: false, url: '', heard: () => {} };
  const server = http.createServer(async (incoming, response) => {
    shop.told.push(`${incoming.method} ${incoming.url} ${await text(incoming)}`);
    response.statusCode = shop.confirms ? 204 : 500;
    response.end();
    shop.heard();
  });
  const { url } = await listenFor(t, server);
  shop.url = url;
  const hears = (count: number) =>
    new Promise<void>((resolve) => {
      shop.heard = () => {
        if (shop.told.length >= count) resolve();
      };
      shop.heard();
    });
  return Object.assign(shop, { hears });
}

// covers R124
t.test(
  'account: removed, no row on disk names its contact or nickname, and a module is notified',
  async (t) => {
    const shop = await startShop(t);
    const dataPath = temporaryFolder(t);
    const configuration = { Modules: { shop: { url: shop.url, accountEvents: true } } };
    const start = () => launch({ configuration, args: ['--sandbox'], dataPath });
    let gateway = await start();
    t.teardown(() => gateway.stop());
    const { url } = gateway;
    const ada = await signUp(url);
    const headers = { Cookie: ada.cookie };
    const post = async (path: string, body: object = {}) =>
      expectOk(path, await request(`${url}/auth/v1/${path}`, { headers, body }));
    await post('account', { nickname: NICKNAME });
    const asked = await post('login_phone', { phone: PHONE });
    const code = await arrival(gateway.sandbox, PHONE);
    await post('account/contacts/add', { challengeId: asked.json['result']?.['challengeId'], code });
    await post('app/upsert_usr_app', SHOP);
    const texts = [PHONE, NICKNAME, SHOP.name, SHOP.url, ada.key.publicKey];
    const before = await textsInRows(dataPath, texts);
    for (const text of texts)
      t.ok(
        before.some((row) => row.endsWith(text)),
        `before: ${text}`,
      );
    const file = await request(`${url}/auth/v1/account/export`, { headers });
    t.match(file.json, {
      profile: { nickname: NICKNAME },
      applications: [{ name: SHOP.name }],
      filesMissing: null,
    });
    await post('account/remove');
    t.equal((await request(`${url}/auth/v1/account`, { headers })).status, 401);
    t.equal((await logIn(url, ada.key)).status, 401);
    await shop.hears(1);
    // Messages of the removal may still be on their way to the application and the codes.
    await until(async () => (await textsInRows(dataPath, texts)).length === 0);
    await gateway.kill();
    t.same(await textsInRows(dataPath, texts), [], 'after kill -9');
    gateway = await start();
    shop.confirms = true;
    await shop.hears(shop.told.length + 1);
    const call = `POST /shop/v1/accounts/removed {"userId":"${ada.userId}"}`;
    t.same([...new Set(shop.told)], [call], 'told again until it confirmed');
    t.same(await textsInRows(dataPath, texts), []);
    const metrics = await request(`${gateway.internal}/metrics`);
    t.match(metrics.text, /gatehouse_account_notices_total\{outcome="told"\} 1/);
    const proxied = await request(`${gateway.url}/shop/v1/accounts/removed`, {
      headers: { Cookie: (await signUp(gateway.url)).cookie },
      body: { userId: '1' },
    });
    t.equal(proxied.status, 404, 'only the gateway tells');
  },
);
