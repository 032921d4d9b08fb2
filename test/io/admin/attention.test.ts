/** Rows that need a person: every row of the table finds its case, and a healthy gateway has none. */
import t from 'tap';
import { DAY_MS } from '../../../src/domain/time.ts';
import { ATTENTION_ROWS, type AttentionFacts, attentionOf } from '../../../src/io/admin/attention.ts';
import { noTroubles } from '../../support/panel/history.ts';

const NOW_MS = Date.UTC(2026, 10, 27, 8, 0, 0);

const healthy: AttentionFacts = {
  nodes: [{ name: null, value: await noTroubles() }],
  appNames: new Map([['12345678', 'Ledger sync']]),
  failingActors: 0,
  deadLetters: 0,
  auditDropped: 0,
  reports: [{ name: 'a', state: 'joined', lag: 3 }],
  keysOfOnlyAdmin: { userId: '77', keys: 2 },
  toolsWaiting: 0,
  appsWaiting: 0,
  moduleKeys: [
    { name: 'wallet', keySinceMs: NOW_MS - 364 * DAY_MS },
    { name: 'chat', keySinceMs: undefined },
  ],
  nowMs: NOW_MS,
};

t.test('attention: a healthy gateway has no case', (t) => {
  t.same(attentionOf(healthy), []);
  t.end();
});

t.test('attention: every row finds its case, the bad ones first, each with its page', (t) => {
  const webhook = { appId: '12345678', sinceMs: NOW_MS - 360_000, host: 'ledger.example.com:443' };
  const found = attentionOf({
    ...healthy,
    nodes: [
      {
        name: 'b',
        value: {
          webhooks: [
            { ...webhook, state: 'failing' },
            { ...webhook, appId: '990001', state: 'disabled' },
          ],
          breakersOpen: ['market_get_rates'],
          loopDelayMs: 350,
          isWritable: false,
          freeBytes: 5 * 1024 ** 2,
        },
      },
    ],
    failingActors: 1,
    deadLetters: 2,
    auditDropped: 1,
    reports: [
      { name: 'b', state: 'late', lag: 1 },
      { name: 'c', state: 'out', lag: 9_000 },
      { name: 'd', state: 'joined', lag: 9_000 },
    ],
    keysOfOnlyAdmin: { userId: '77', keys: 1 },
    toolsWaiting: 3,
    appsWaiting: 1,
    moduleKeys: [{ name: 'wallet', keySinceMs: NOW_MS - 400 * DAY_MS }],
  });
  t.same(
    new Set(found.map(({ kind }) => kind)),
    new Set(ATTENTION_ROWS.map(({ kind }) => kind)),
    'no row without a case',
  );
  const levels = found.map(({ level }) => level);
  t.same(levels, [...levels].sort(), 'bad before warn');
  const titles = found.map(({ title }) => title);
  for (const title of [
    'The journal of node b takes no writes',
    'Webhook of Ledger sync fails',
    'Webhook of application …0001 is disabled',
    'Breaker open: market_get_rates',
    '1 actor fails',
    '2 dead letters',
    'Node b has not renewed its lease',
    'Node d is behind',
    'The key of module wallet is old',
    '3 tools of other servers wait for an approval',
    '1 application waits for an approval',
  ])
    t.ok(titles.includes(title), title);
  t.equal(
    found.find(({ kind }) => kind === 'webhook')?.detail,
    'ledger.example.com:443, for 6 minutes. Events wait.',
  );
  t.equal(found.find(({ kind }) => kind === 'webhook')?.href, '/ProxyAdmin/Apps?deliveries=12345678');
  t.equal(found.find(({ kind }) => kind === 'onlyAdmin')?.href, '/ProxyAdmin/Account?userId=77');
  t.end();
});
