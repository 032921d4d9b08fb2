/** Each tile and each line of the dashboard, compared with numbers that the test has caused. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { type Agent, createServer } from 'node:http';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import {
  bearerOf,
  callTool,
  expectOk,
  mcpLogin,
  type Person,
  request,
  signUp,
  signUpAgent,
  updateKey,
} from '../../../kit/agent.ts';
import { listenFor, oneConnection, sendHttp } from '../../../kit/http.ts';
import { launchFor } from '../../../kit/launch.ts';
import { DATA_FILE } from '../../../src/actors/runtime/journal/file.ts';
import { HISTORY_SERIES } from '../../../src/io/admin/history/series.ts';
import { METRICS } from '../../../src/io/observability/metric-table.ts';
import { EventClient } from '../../support/events/event-client.ts';
import { createDraft } from '../../support/files/draft-program.ts';
import { promiseOf } from '../../support/http.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { countedBy, ShownDashboard, type ShownSample } from '../../support/pages/dashboard.ts';
import { openPage } from '../../support/pages/pages.ts';
import { becomeAdmin, printedLink } from '../../support/pages/panel.ts';

interface Shown {
  readonly title: string;
  readonly names: readonly string[];
}

interface Table {
  readonly TILES: readonly Shown[];
  readonly CHARTS: readonly { title: string; series: readonly (Shown & { label: string; kept: string })[] }[];
  readingOf(sample: object, name: string): number | null | undefined;
}

const TABLE = (await import(pathToFileURL(resolve('src/web/admin/charts.js')).href)) as Table;
const MEGABYTE = 1024 * 1024;
/** Quotas of a five-second window: above the needs of the page, low enough to be used up. */
const SETTINGS = {
  ApiRPSLimit: 40,
  IpRPSLimit: 80,
  SessionApiRPSLimit: 30,
  UserApiRPSLimit: 0,
  PubKeyApiRPSLimit: 4,
  McpApiRPSLimit: 2,
  FileUploadBytesPerSecond: 4 * MEGABYTE,
  EventReorderMilliseconds: 0,
};
const UPLOAD_BYTES = 16 * MEGABYTE;
const SOCKETS = 40;
const STREAMS = 4;
const HELD_CALLS = 5;
const FAILED_CALLS = 4;
const REFUSALS = 3;
const AGENTS = 2;
const CALLS = 10;
const TOOL_CALLS = 2;
const BALANCE = '/wallet/v1/balance/get?currency=DEMO';
/** Longer than two samples, shorter than the time-out of a module. */
const SLOW_MS = 4_500;
/** The latency classes are 12 % wide. */
const CLASS_WIDTH = 1.13;
const HALTS = 8;
const HALT_MS = 250;

t.setTimeout(180_000);
const browser = await sharedBrowser(t);
const gateway = await launchFor(t, { args: ['--sandbox'], configuration: { Settings: SETTINGS } });
const { url } = gateway;
const port = Number(new URL(url).port);

const { page } = await openPage(t, browser, await printedLink(gateway), { passkeys: true });
await becomeAdmin(page);
const dashboard = await ShownDashboard.keep(page);

/** Waits for a sample with these tiles and lines, and compares the last sample with them. */
async function shows(
  t: Test,
  lines: Readonly<Record<string, number>>,
  tiles: Readonly<Record<string, string>> = {},
): Promise<void> {
  const isThere = (look: ShownSample | undefined) =>
    Object.entries(lines).every(([name, value]) => look?.lines[name] === value) &&
    Object.entries(tiles).every(([name, text]) => look?.tiles[name] === text);
  const looks = await dashboard.since(await dashboard.count(), (looks) => isThere(looks.at(-1)));
  t.match(looks.at(-1), { lines, tiles });
}

/** Waits until the rates since a sample add up to these counts, and one sample longer. */
async function counts(t: Test, from: number, wanted: Readonly<Record<string, number>>): Promise<void> {
  const sums = (looks: readonly ShownSample[]) =>
    Object.fromEntries(Object.keys(wanted).map((name) => [name, countedBy(looks, name)]));
  const isOver = (looks: readonly ShownSample[]) =>
    Object.entries(sums(looks.slice(0, -1))).every(([name, sum]) => sum >= (wanted[name] ?? 0));
  t.same(sums(await dashboard.since(from, isOver)), wanted);
}

t.test('dashboard: each tile and each line names values that the gateway has', async (t) => {
  const sample = await dashboard.sent();
  const shown = [...TABLE.TILES, ...TABLE.CHARTS.flatMap(({ series }) => series)];
  const unknown = shown.flatMap(({ names }) =>
    names.filter((name) => TABLE.readingOf(sample, name) === undefined),
  );
  t.same(unknown, []);
  const series = TABLE.CHARTS.flatMap((chart) => chart.series);
  t.same(
    series.map(({ kept }) => kept).sort(),
    [...HISTORY_SERIES.map(({ name }) => name), 'p50', 'p99'].sort(),
    'each line has its series of the history',
  );
  const [scope] = METRICS.gatehouse_limiter_decisions_total.labels;
  const limited = (scope.values ?? []).map((name) => `gatehouse_limiter_decisions_total.${name}.limited`);
  const [, , refused] = TABLE.TILES;
  t.same(
    limited.filter((name) => !refused?.names.includes(name)),
    ['gatehouse_limiter_decisions_total.key_proof.limited'],
    'no scope of the limiter is forgotten',
  );
});

t.test('dashboard: sessions and streams', async (t) => {
  await shows(t, {
    'Sessions: browsers': 1,
    'Sessions: agents': 0,
    'Connections and streams: event streams': 0,
  });
  const people = await Promise.all(Array.from({ length: AGENTS }, () => signUp(url)));
  for (const person of people) {
    expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
    expectOk('mcp_login', await mcpLogin(url, person.key, Date.now()));
  }
  const sid = people[0]?.cookie.replace('sid=', '') ?? '';
  const streams = Array.from({ length: STREAMS }, () => new EventClient(port, { sid }));
  await Promise.all(streams.map((stream) => stream.opened()));
  await shows(t, {
    'Sessions: browsers': 1 + AGENTS,
    'Sessions: agents': AGENTS,
    'Connections and streams: event streams': STREAMS,
  });
  for (const stream of streams) stream.close();
  await shows(t, { 'Connections and streams: event streams': 0 });
});

t.test('dashboard: connections', async (t) => {
  const from = await dashboard.count();
  const sockets = Array.from({ length: SOCKETS }, () => connect(port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  const openOf = ({ lines }: ShownSample) => lines['Connections and streams: connections'] ?? 0;
  // In addition to the connections of the browser and of this file's requests.
  const areOpen = (look: ShownSample) => openOf(look) >= SOCKETS && openOf(look) < 2 * SOCKETS;
  const looks = await dashboard.since(from, (looks) => looks.some(areOpen));
  for (const socket of sockets) socket.destroy();
  t.ok(looks.some(areOpen), `${looks.map(openOf)}`);
  t.same(
    looks.map(({ tiles }) => Number(tiles['Connections'])),
    looks.map(openOf),
  );
  const later = await dashboard.since(await dashboard.count(), (looks) =>
    looks.some((look) => !areOpen(look)),
  );
  t.ok(openOf(later.at(-1) as ShownSample) < SOCKETS);
});

async function fault(mode: string, delayMs?: number): Promise<void> {
  const body = { module: 'wallet', mode, ...(delayMs === undefined ? {} : { delayMs }) };
  expectOk('fault', await request(`${gateway.sandbox}/sandbox/v1/fault`, { body }));
}

/** An application of the person that holds what is delivered to it until `release`. */
async function holdDeliveries(t: Test, { cookie }: Person): Promise<() => void> {
  const { promise: released, resolve: release } = promiseOf();
  const receiver = createServer((incoming, answer) => {
    incoming.resume();
    void released.then(() => answer.end());
  });
  const webhookUrl = `${(await listenFor(t, receiver)).url}/`;
  const body = { name: 'Shop', url: 'https://shop.example', webhookUrl };
  const headers = { Cookie: cookie };
  expectOk('application', await request(`${url}/auth/v1/app/upsert_usr_app`, { headers, body }));
  return release;
}

async function pushEvent(crmId: string): Promise<void> {
  const key = readFileSync(join(gateway.dataPath, 'sandbox/module-key'), 'utf8').trim();
  const body = { events: [{ module: 'core', tick: '1', type: 'Tried', crmId, data: {} }] };
  const headers = { 'X-Module-Key': key };
  expectOk('push', await request(`${gateway.internal}/internal/v1/events`, { headers, body }));
}

async function upload(cookie: string): Promise<void> {
  const fileId = await createDraft(url, cookie);
  const init = { method: 'POST', headers: { Cookie: cookie }, body: randomBytes(UPLOAD_BYTES) };
  const answer = await fetch(`${url}/auth/v2/file/stream_upload/${fileId}`, init);
  if (answer.status !== 200) throw new Error(`stream_upload: ${answer.status}`);
}

t.test('dashboard: calls, uploads and deliveries in flight, and their results', async (t) => {
  const [person, owner] = [await signUp(url), await signUp(url)];
  const release = await holdDeliveries(t, owner);
  const from = await dashboard.count();
  const before = Number((await dashboard.next()).tiles['In flight']);
  await fault('slow', SLOW_MS);
  const headers = { Cookie: person.cookie };
  const calls = Array.from({ length: HELD_CALLS }, () => request(`${url}${BALANCE}`, { headers }));
  const startedMs = performance.now();
  const uploaded = upload(person.cookie);
  await pushEvent(owner.userId);
  await shows(
    t,
    {
      'Uploads: receiving': 1,
      'Uploads: waiting for bandwidth': 1,
      'Webhooks: applications waiting': 1,
    },
    { 'In flight': String(before + HELD_CALLS + 1) },
  );
  release();
  t.same(
    (await Promise.all(calls)).map(({ status }) => status),
    calls.map(() => 200),
  );
  const tookMs = performance.now() - startedMs;
  await uploaded;
  const megabytes = UPLOAD_BYTES / MEGABYTE;
  await counts(t, from, {
    'Files, MB per second: received': megabytes,
    'Files, MB per second: through the limiter': megabytes,
    'Webhooks: delivered per second': 1,
  });
  const looks = await dashboard.since(from, () => true);
  const slowest = looks.reduce((one, other) => (latencyOf(other) > latencyOf(one) ? other : one));
  const isRight = (shownMs: number) => shownMs >= SLOW_MS && shownMs <= tookMs * CLASS_WIDTH;
  t.ok(isRight(latencyOf(slowest)), `p99 ${latencyOf(slowest)} ms of ${tookMs} ms`);
  t.ok(isRight(Number.parseFloat(slowest.tiles['Latency p99'] ?? '')), 'and on the tile');
  await fault('ok');
});

const latencyOf = ({ lines }: ShownSample) => lines['Latency, ms: p99'] ?? 0;

t.test('dashboard: requests, errors, latency, and the use of tools and routes', async (t) => {
  const person = await signUpAgent(url);
  const bearer = await bearerOf(url, person.key);
  await dashboard.next();
  const from = await dashboard.count();
  const headers = { Cookie: person.cookie };
  for (let call = 0; call < CALLS; call += 1)
    expectOk('balance', await request(`${url}${BALANCE}`, { headers }));
  for (let call = 0; call < TOOL_CALLS; call += 1)
    expectOk('tool', await callTool(url, bearer, 'wallet_get_info'));
  await fault('down');
  for (let call = 0; call < FAILED_CALLS; call += 1)
    t.ok((await request(`${url}${BALANCE}`, { headers })).status >= 500);
  await fault('ok');
  await counts(t, from, {
    'Requests per second: all': CALLS + TOOL_CALLS + FAILED_CALLS,
    'Requests per second: errors': FAILED_CALLS,
  });
  await page.getByRole('button', { name: '5 min' }).click();
  for (const name of ['wallet_get_info', 'POST /mcp'])
    await page.getByRole('row', { name: new RegExp(`^${name}\\s+${TOOL_CALLS}\\s`) }).waitFor();
  const looks = await dashboard.since(from, () => true);
  t.same(
    looks.map(({ tiles }) => Number(tiles['Requests / s'])),
    looks.map(({ lines }) => lines['Requests per second: all']),
  );
  t.ok(looks.some(({ lines }) => (lines['Latency, ms: p50'] ?? 0) > 0));
});

/** Sends requests until so many were refused by a limit. */
async function untilRefused(ask: () => Promise<number>): Promise<void> {
  for (let refused = 0; refused < REFUSALS; ) if ((await ask()) === 429) refused += 1;
}

/** The status of a request without a session, from an address of the loopback network. */
async function infoFrom(localAddress: string, agent: Agent | false): Promise<number> {
  return (await sendHttp(`${url}/auth/v1/get_info`, { localAddress, agent })).status;
}

// covers R4
t.test('dashboard: three refusals by each scope of the limiter', async (t) => {
  const person = await signUpAgent(url);
  const bearer = String((await mcpLogin(url, person.key, Date.now())).json['result']?.['sessionId']);
  await shows(t, {}, { 'Refused by limits': '0' });
  const from = await dashboard.count();
  const agent = oneConnection();
  t.teardown(() => agent.destroy());
  await untilRefused(() => infoFrom('127.0.0.8', agent));
  await untilRefused(() => infoFrom('127.0.0.9', false));
  await untilRefused(async () => (await mcpLogin(url, person.key, Date.now())).status);
  await untilRefused(async () => (await callTool(url, bearer, 'wallet_get_info')).status);
  const headers = { Cookie: person.cookie };
  await untilRefused(async () => (await request(`${url}/auth/v1/get_info`, { headers })).status);
  const scopes = ['connection', 'address', 'login', 'key', 'session'];
  const named = scopes.map((scope) => [`Refused by limits per second: ${scope}`, REFUSALS]);
  await counts(t, from, {
    ...Object.fromEntries(named),
    'Refused by limits per second: all': scopes.length * REFUSALS,
  });
  await shows(t, {}, { 'Refused by limits': String(scopes.length * REFUSALS) });
});

t.test('dashboard: memory, the journal, and how late the event loop was', async (t) => {
  const { pid } = gateway.process;
  const from = await dashboard.count();
  // Enough that one of two samples has more of them than its p99 ignores.
  for (let halt = 0; halt < HALTS; halt += 1) {
    process.kill(Number(pid), 'SIGSTOP');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, HALT_MS);
    process.kill(Number(pid), 'SIGCONT');
    expectOk('health', await request(`${url}/health`));
  }
  const delayOf = ({ lines }: ShownSample) => lines['Event loop delay p99, ms: delay'] ?? 0;
  const isLate = (look: ShownSample) => delayOf(look) > 0.9 * HALT_MS && delayOf(look) < 4 * HALT_MS;
  const looks = await dashboard.since(from, (looks) => looks.some(isLate));
  t.ok(looks.some(isLate), `${looks.map(delayOf)} ms`);
  const { lines, tiles } = await dashboard.next();
  const journal = statSync(join(gateway.dataPath, DATA_FILE)).size / MEGABYTE;
  t.ok(
    Math.abs((lines['Memory and journal, MB: journal'] ?? 0) - journal) <= 0.5,
    `${journal} MB of journal`,
  );
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  const memory = Number(kilobytes) / 1024;
  for (const shown of [
    lines['Memory and journal, MB: memory'] ?? 0,
    Number.parseFloat(tiles['Memory'] ?? ''),
  ])
    t.ok(shown > 0.7 * memory && shown < 1.3 * memory, `${shown} of ${memory} MB`);
});
