/** Routes that are open to all (info, get_info, health), and the right to see the settings. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import type { ActorSystem } from '../../../src/actors/runtime/actor.ts';
import { featuresOf } from '../../../src/domain/features.ts';
import { SCOPE_SETTINGS } from '../../../src/domain/limits/quotas.ts';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import type { SessionContext } from '../../../src/domain/sessions.ts';
import { LiveSettings, SETTINGS } from '../../../src/domain/settings/settings.ts';
import type { SessionLookup } from '../../../src/io/http/table/route.ts';
import { createAdminSettingRoutes } from '../../../src/io/routes/admin/settings.ts';
import {
  createHealthRoute,
  getInfo,
  type HealthFacts,
  info,
  relatedOrigins,
} from '../../../src/io/routes/info.ts';
import { BROWSER_SESSION, makeSite, requestText, sendRaw, startHttp } from '../../support/http.ts';

const HEALTHY: HealthFacts = { databaseConnected: true, activeSessions: 3, rssBytes: 5_000, degraded: [] };
const ALICE: SessionContext = { ...BROWSER_SESSION, nickname: 'Ada' };
const ADMIN: SessionContext = { ...ALICE, role: 'admin' };
/** Knows the admin `root` and the user `alice`. */
const GATE: SessionLookup = {
  authenticate: (token) =>
    token === 'root' || token === 'alice'
      ? { session: token === 'root' ? ADMIN : ALICE, quotaResult: undefined }
      : undefined,
};

/** Knows one nickname. */
const NAMES = { exists: () => true, now: () => 'Ada' } as unknown as ActorSystem;

function start(t: Test, facts: () => HealthFacts = () => HEALTHY, site = {}) {
  const live = new LiveSettings({ ApiRPSLimit: 0, IpRPSLimit: 0 });
  const routes = [
    getInfo,
    relatedOrigins,
    info,
    createHealthRoute(facts),
    ...createAdminSettingRoutes({
      settings: live,
      stored: { ...NAMES, stored: () => ({}) as never },
      reload: () => undefined,
      bounds: new SharedBounds(live),
    }),
  ];
  const fixture = closeAfter(t, startHttp({ routes, settings: live, gate: GATE, site }));
  const get = async (path: string, headers = {}) => {
    const { status, body } = await sendRaw(fixture.port, requestText('GET', path, headers));
    return { status, json: JSON.parse(body) as Record<string, unknown> };
  };
  return { ...fixture, get, settings: live };
}

// covers R81
t.test('related origins: pages that may use the passkeys, without native apps', async (t) => {
  const { fido2 } = makeSite(0);
  const origins = ['https://gate.example', 'https://shop.example', `android:apk-key-hash:${'A'.repeat(43)}`];
  const { get } = start(t, undefined, { fido2: { ...fido2, origins } });
  t.strictSame(await get('/.well-known/webauthn'), {
    status: 200,
    json: { origins: ['https://gate.example', 'https://shop.example'] },
  });
});

// covers R107
t.test('info: version, ways to log in, relying party and public limits', async (t) => {
  const { get, settings } = start(t, undefined, { project: 'shop', version: '1.22.3' });
  for (const name of Object.values(SCOPE_SETTINGS)) settings.set(name, SETTINGS[name].default);
  const { status, json } = await get('/auth/v1/info');
  t.equal(status, 200);
  t.match(json, {
    result: {
      project: 'shop',
      version: '1.22.3',
      fido2: { rpId: 'localhost', rpName: 'Gatehouse', origins: Array },
      baseUrl: /^http:/,
      limits: {
        activeKeys: 20,
        challengeSeconds: 300,
        chunkBytes: 262_144,
        fileMaxSizeBytes: 20_971_520,
        windowSeconds: 5,
        quotas: { c: 10, i: 60, p: 10, s: 15, m: 10 },
      },
      session: null,
    },
  });
  const { authMethods } = json['result'] as { authMethods: string[] };
  t.ok(authMethods.includes('key'));
});

t.test(
  'info: a changed setting shows at once, each deployment tells its own facts, each caller its own session',
  async (t) => {
    const shop = start(t, undefined, { project: 'shop' });
    const bank = start(t, undefined, { project: 'bank "north"' });
    const told = async ({ get }: typeof shop, cookie?: string) => {
      const { json } = await get('/auth/v1/info', cookie === undefined ? {} : { Cookie: `sid=${cookie}` });
      return json['result'] as Record<string, unknown>;
    };
    t.match(await told(shop, 'root'), {
      project: 'shop',
      limits: { activeKeys: 20 },
      session: { userId: '42', nickname: 'Ada', role: 'admin' },
    });
    t.match(await told(bank, 'alice'), { project: 'bank "north"', session: { userId: '42', role: null } });
    t.match(await told(shop), { project: 'shop', session: null });
    shop.settings.set('ActiveKeysLimit', 7);
    t.match(await told(shop), { limits: { activeKeys: 7, challengeSeconds: 300 } });
    shop.settings.set('ChallengeSeconds', 60);
    t.match(await told(shop), { limits: { activeKeys: 7, challengeSeconds: 60 } });
    shop.settings.set('IpRPSLimit', 7);
    t.match(await told(shop), { limits: { quotas: { i: 35, s: 15 } } });
    t.match(await told(bank), { limits: { activeKeys: 20, challengeSeconds: 300, quotas: { i: 0 } } });
  },
);

t.test('info: names the features of this deployment, so that pages leave out the others', async (t) => {
  for (const sharesFiles of [true, false]) {
    const features = featuresOf({ sharesFiles }).offered;
    const { get } = start(t, undefined, { features });
    const { json } = await get('/auth/v1/info');
    t.same((json['result'] as { features: string[] }).features, features);
    t.equal(features.includes('files'), sharesFiles);
  }
});

// covers R62
t.test('health: database, memory and sessions without the envelope, one word with plain=1', async (t) => {
  let facts = HEALTHY;
  const { get } = start(t, () => facts);
  const figures = { memory: { rssBytes: 5_000 }, activeSessions: 3 };
  t.strictSame(await get('/health'), {
    status: 200,
    json: { status: 'healthy', database: 'connected', ...figures },
  });
  t.strictSame(await get('/health?plain=1'), { status: 200, json: { status: 'healthy' } });
  facts = { ...HEALTHY, databaseConnected: false };
  t.strictSame(await get('/health'), {
    status: 503,
    json: { status: 'unhealthy', database: 'disconnected', ...figures },
  });
  t.strictSame(await get('/health?plain=1'), { status: 503, json: { status: 'unhealthy' } });
});

t.test('settings: an admin sees all of them with their bounds, others none', async (t) => {
  const { get } = start(t);
  const path = '/ProxyAdmin/api/settings';
  const { status, json } = await get(path, { Cookie: 'sid=root' });
  t.equal(status, 200);
  const rows = json['result'] as { name: string }[];
  t.match(
    rows.find(({ name }) => name === 'RateLimitWindowSeconds'),
    { id: 25, type: 'number', unit: 's', default: 5, min: 1, max: 3600, value: 5 },
  );
  t.match(
    rows.find(({ name }) => name === 'ApiRPSLimit'),
    { id: 7, default: 2, value: 0 },
    'the value beside the default',
  );
  t.equal((await get(path, { Cookie: 'sid=alice' })).status, 403);
  t.equal((await get(path)).status, 401);
  const elsewhere = start(t, undefined, { adminAllow: ['192.0.2.0/24'] });
  t.match(await elsewhere.get(path, { Cookie: 'sid=root' }), {
    status: 403,
    json: { error: { code: 1103 } },
  });
});
