/**
 * MCP hosts with a command line, from the address alone to a called tool, a refresh and a new consent; with a header at /mcp
 * also to a tool of another MCP server. This file runs itself again in a network namespace with loopback alone.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { expectOk, mcpLogin, type Person, request, signUp, updateKey } from '../../../kit/agent.ts';
import { closeAfter, stopAfter } from '../../../kit/close-after.ts';
import { agree, disconnect, hostsOf } from '../../../kit/consent.ts';
import { HIGH_LIMITS, launchFor, type RunningGateway } from '../../../kit/launch.ts';
import {
  CLI_HOSTS,
  type CliHost,
  hostsUnavailable,
  prepareHost,
  type RunHost,
  versionOf,
} from '../../support/connect/cli-hosts.ts';
import { MESSAGE, startModel } from '../../support/connect/model.ts';
import { endStoredAccess } from '../../support/connect/peers.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { startEverything } from '../../support/upstreams/everything.ts';

const AVAILABLE = /available\\*":\\*"1000\.00/;
const AUTHORIZE = /(http\S+\/connect\/authorize\?\S+)\s/;
/** Hosts ask for all metadata again at each step. */
const TEST_MS = 150_000;
const LIST = ['mcp', 'list'];
/** Set in the process within the namespace. */
const MARK = 'LOOPBACK_ALONE';

/** A gateway, a model and a server behind the gateway, for all hosts. */
interface Setting {
  readonly gateway: RunningGateway;
  readonly model: string;
  /** Length of the log that `pathsSince` has read. */
  readonly seen: { length: number };
}

async function prepare(t: Test): Promise<Setting> {
  const everything = stopAfter(t, await startEverything());
  const gateway = await launchFor(t, {
    args: ['--sandbox'],
    configuration: { Settings: HIGH_LIMITS, McpServers: { all: { url: everything.url } } },
  });
  await gateway.said(/mcp server up/);
  const model = closeAfter(t, await startModel());
  return { gateway, model: model.url, seen: { length: 0 } };
}

/** Paths of requests that the gateway has answered since the last call. */
async function pathsSince({ gateway, seen }: Setting): Promise<readonly string[]> {
  const end = `/after/${seen.length}`;
  await request(gateway.url + end);
  await gateway.said(new RegExp(`"path":"${end}"`));
  const text = gateway.output().stderr.slice(seen.length);
  seen.length += text.length;
  return [...text.matchAll(/"path":"([^"]+)"/g)].flatMap(([, path = '']) => (path === end ? [] : [path]));
}

/** The login of the host, with the person's browser at the printed address. */
async function logIn(t: Test, host: CliHost, run: RunHost, url: string, person: Person): Promise<void> {
  const login = run(host.login, host.needsTerminal);
  t.teardown(() => login.stop());
  if (host.question !== undefined) {
    await login.next(host.question);
    login.tell('y');
  }
  const [, address = ''] = await login.next(AUTHORIZE);
  t.equal((await request((await agree(url, person, address)).href)).status, 200);
  await login.next(host.loggedIn);
  await login.ended();
}

/** Puts the end of a stored token into the past. */
function letExpire(path: string): void {
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/"expiresAt": \d+/, '"expiresAt": 1'));
}

/** Does the host connect? By its list where that connects, or by a call. */
async function connects(host: CliHost, run: RunHost): Promise<boolean> {
  const [args, sign] = host.listConnects ? [LIST, host.listed] : [host.turn, AVAILABLE];
  return sign.test(await run(args).ended());
}

function testHost(name: string, host: CliHost, setting: Setting): void {
  const { gateway, model } = setting;
  const { url } = gateway;
  const shown = `${name} ${versionOf(host)}`;

  t.test(`connect, ${shown}: login, call, refresh, revocation, login`, { timeout: TEST_MS }, async (t) => {
    const [person, home] = [await signUp(url), temporaryFolder(t)];
    const run = await prepareHost(host, { home, address: `${url}/connect/mcp`, model });
    await logIn(t, host, run, url, person);
    t.match(await run(host.turn).ended(), AVAILABLE);
    await endStoredAccess(url, join(home, host.store));
    if (host.times !== undefined) letExpire(join(home, host.times));
    t.match(await hostsOf(url, person), [{ sessions: 0 }], 'its access token has ended');
    t.ok(await connects(host, run), 'after a refresh');
    t.match(await hostsOf(url, person), [{ sessions: 1 }]);
    await disconnect(url, person);
    t.notOk(await connects(host, run), 'after the revocation');
    await logIn(t, host, run, url, person);
    t.ok(await connects(host, run), 'after a new consent');
    if (!host.listConnects) t.match(await run(LIST).ended(), host.listed);
  });

  for (const isGood of [true, false])
    t.test(
      `hosts, ${shown} at /mcp: ${isGood ? 'a good header calls a tool, and one of another MCP server' : 'an expired header starts no OAuth'}`,
      { timeout: TEST_MS },
      async (t) => {
        const [person, home] = [await signUp(url), temporaryFolder(t)];
        expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
        const login = expectOk('mcp_login', await mcpLogin(url, person.key, Date.now()));
        const bearer = isGood ? String(login.json['result']?.['sessionId']) : 'A'.repeat(46);
        const run = await prepareHost(host, { home, address: `${url}/mcp`, bearer, model });
        await pathsSince(setting);
        const text = await run(isGood || !host.listConnects ? host.turn : LIST).ended();
        t.equal(AVAILABLE.test(text), isGood);
        t.equal(text.includes(`Echo: ${MESSAGE}`), isGood);
        t.notMatch(text, AUTHORIZE);
        const paths = await pathsSince(setting);
        t.ok(paths.includes('/mcp'), 'the host has connected');
        const others = paths.filter((path) => path !== '/mcp' && !path.startsWith('/auth/v1/'));
        t.strictSame(others, [], 'no metadata is asked for, and no login begins');
      },
    );
}

if (process.env[MARK] === undefined) {
  t.setTimeout(600_000);
  const args = ['-n', 'sh', '-c', 'ip link set lo up && exec "$0" "$1"'];
  const again = [...args, process.execPath, fileURLToPath(import.meta.url)];
  const env = { ...process.env, [MARK]: 'yes' };
  await t.test('hosts with loopback alone', { skip: hostsUnavailable }, async (t) => {
    t.setTimeout(600_000);
    await t.spawn('unshare', again, { env, timeout: 600_000 });
  });
} else {
  t.setTimeout(600_000);
  process.on('disconnect', () => process.exit(1));
  process.channel?.unref();
  const setting = await prepare(t);
  for (const [name, host] of Object.entries(CLI_HOSTS)) testHost(name, host, setting);
}
