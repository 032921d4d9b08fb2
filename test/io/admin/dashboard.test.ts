/** Samples of the live dashboard, and the admin routes of uploads, events and actors. */
import http from 'node:http';
import t from 'tap';
import type { StoredEvent } from '../../../src/domain/events/events.ts';
import { Dashboard } from '../../../src/io/admin/dashboard.ts';
import type { DashboardSample } from '../../../src/io/admin/figures.ts';
import type { FinishedRequest } from '../../../src/io/http/exchange/finished.ts';
import type { OutgoingBody } from '../../../src/io/http/exchange/stream.ts';
import { cookie, planter } from '../../support/account.ts';
import { startAdminOf } from '../../support/admin.ts';

function finished(route: string, status: number, milliseconds: number): FinishedRequest {
  return { method: 'GET', route, status, durationMs: milliseconds } as FinishedRequest;
}

/** A stream whose frames the test keeps. */
function watching(dashboard: Dashboard, alive = () => true) {
  const sent: string[] = [];
  let ended = false;
  const reply = dashboard.watch(alive);
  const out: OutgoingBody = {
    send: (bytes) => {
      sent.push(String(bytes));
      return true;
    },
    end: () => {
      ended = true;
    },
    cut: () => undefined,
  };
  reply?.source.start(out);
  t.teardown(() => reply?.source.lost());
  return { reply, sent, isEnded: () => ended };
}

t.test('dashboard: counts while one is open, by route and tool, with percentiles', (t) => {
  const dashboard = new Dashboard(() => ({ gatehouse_sessions: { browser: 3, mcp: 0 } }));
  dashboard.observe(finished('/early', 200, 1));
  watching(dashboard);
  for (let each = 0; each < 98; each += 1) dashboard.observe(finished('/fast', 200, 1));
  dashboard.observe(finished('/slow', 500, 400));
  dashboard.observe(finished('/slow', 429, 400));
  const called = { event: 'toolCall', name: 'sessions', elapsedMs: 1, backendMs: undefined } as const;
  for (const outcome of ['ok', 'ToolFailed']) dashboard.observeCall({ ...called, outcome });
  const sample: DashboardSample = dashboard.sample(Date.now());
  t.match(sample, {
    requests: 100,
    errors: 1,
    routes: [
      { name: 'GET /fast', count: 98, errors: 0 },
      { name: 'GET /slow', count: 2, errors: 1 },
    ],
    tools: [{ name: 'sessions', count: 2, errors: 1 }],
    metrics: { gatehouse_sessions: { browser: 3, mcp: 0 } },
  });
  t.ok((sample.p50 ?? 0) >= 1 && (sample.p50 ?? 0) < 1.13, 'within its bucket of 12 %');
  t.ok((sample.p99 ?? 0) >= 400 && (sample.p99 ?? 0) < 450);
  dashboard.close();
  t.end();
});

t.test('dashboard: at most 50 are open, and one that is closed makes room', (t) => {
  const dashboard = new Dashboard(() => ({}));
  const watchers = Array.from({ length: 50 }, () => watching(dashboard));
  t.equal(
    dashboard.watch(() => true),
    undefined,
  );
  watchers[0]?.reply?.source.lost();
  t.not(
    dashboard.watch(() => true),
    undefined,
  );
  dashboard.close();
  t.ok(
    watchers.slice(1).every(({ isEnded }) => isEnded()),
    'a stop ends them all',
  );
  t.end();
});

t.test('live: a stream for the staff that ends with the session', async (t) => {
  const fixture = await startAdminOf(t);
  const { admin, owner, ask, post, http: front } = fixture;
  t.equal((await ask('live', owner)).status, 403);
  const answer = await new Promise<http.IncomingMessage>((resolve) => {
    const path = '/ProxyAdmin/api/live';
    http.get({ port: front.port, host: '127.0.0.1', path, headers: cookie(admin.sid) }, resolve);
  });
  t.equal(answer.headers['content-type'], 'text/event-stream');
  const frames: string[] = [];
  const over = new Promise((resolve) => answer.on('end', resolve));
  const seen = new Promise<void>((resolve) => {
    answer.on('data', (piece: Buffer) => {
      frames.push(piece.toString());
      if (frames.join('').includes('event: look')) resolve();
    });
  });
  await seen;
  const [, data = ''] = /data: (.*)\n/.exec(frames.join('')) ?? [];
  t.match(JSON.parse(data), { requests: Number, rssBytes: Number, loopDelayP99: Number });
  await post('/auth/v1/logout', {}, cookie(admin.sid));
  await over;
});

t.test('events: the newest first, page by page, without what they say', async (t) => {
  const all = Array.from({ length: 250 }, (_, index): StoredEvent => {
    const common = { appId: undefined, currency: undefined, netType: undefined, acceptedMs: 0 };
    const content = { module: 'wallet', tick: '7', type: 'TxInWallet', userId: '9', jsonText: '{}' };
    return { ...common, ...content, sequence: index + 1 };
  });
  const eventLog = {
    newest: 250,
    page: (after: number, limit: number) => all.filter(({ sequence }) => sequence > after).slice(0, limit),
  };
  const fixture = await startAdminOf(t, { eventLog });
  const pageOf = async (path: string) => (await fixture.ask(path)).result as { sequence: number }[];
  const first = await pageOf('events');
  t.equal(first.length, 100);
  t.equal(first[0]?.sequence, 250);
  const second = await pageOf(`events?before=${first.at(-1)?.sequence}`);
  t.equal(second[0]?.sequence, 150);
  const third = await pageOf('events?before=51');
  t.equal(third[0]?.sequence, 50);
  t.equal(third.length, 50);
  t.notMatch(JSON.stringify(third), /wire/);
});

t.test('actors: nothing failed, unknown ones are not found, acts need a fresh login', async (t) => {
  const fixture = await startAdminOf(t);
  t.same((await fixture.ask('actors')).result, { failing: [], missing: [], dead: [], damagedRows: 0 });
  t.same((await fixture.ask('uploads')).result, []);
  const name = { kind: 'user', id: '123' };
  t.equal((await fixture.change('actors/reset', name)).status, 404);
  t.equal((await fixture.change('actors/skip', name)).status, 404);
  t.equal((await fixture.change('actors/reset', name, fixture.owner)).status, 403);
  fixture.actors.clock.nowMs += 16 * 60_000;
  t.equal((await fixture.change('actors/reset', name)).status, 403, 'the login is 16 minutes old');
});

t.test(
  'actors: one in quarantine is listed, reset, its message skipped and the dead letter removed',
  async (t) => {
    const fixture = await startAdminOf(t);
    const { system } = fixture.actors;
    const name = { kind: 'planter', id: 'one' };
    const fail = async () => {
      for (let failure = 1; failure <= 6; failure += 1) {
        await system.ask(planter, 'one', { type: 'crash' }).catch(() => undefined);
        await fixture.actors.advance(8_000);
      }
    };
    await fail();
    t.match((await fixture.ask('actors')).result, { failing: [{ ...name, quarantined: true }] });
    t.equal((await fixture.change('actors/reset', name)).status, 200);
    t.match((await fixture.ask('actors')).result, { failing: [] });
    await fail();
    await system.tell(planter, 'one', { type: 'crash' });
    await fixture.actors.advance(1_000);
    t.equal((await fixture.change('actors/skip', name)).status, 200);
    const { dead } = (await fixture.ask('actors')).result as { dead: readonly Record<string, unknown>[] };
    const [letter] = dead;
    t.match(letter, { ...name, reason: 'skipped by an administrator' });
    const { reason: _, ...key } = letter ?? {};
    t.equal((await fixture.change('actors/discard', key)).status, 200);
    t.match((await fixture.ask('actors')).result, { dead: [] });
    t.ok(fixture.actors.bugs.length > 0, 'each failure is a bug that is reported');
    fixture.actors.bugs.length = 0;
  },
);
