/** The admin panel of several nodes: live figures, a reload, the set-up link, and what it says of a node that is away. */
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import t, { type Test } from 'tap';
import { challenge, cookieOf, expectOk, type Json, request, untilHolds } from '../../../kit/agent.ts';
import { create, makePasskey } from '../../../kit/authenticator.ts';
import { linked, type NodeProcess } from '../../../kit/cluster/nodes.ts';
import { NO_LIMITS, runToEnd } from '../../../kit/launch.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';
import { asked, nodesTest, outcomeOf, resultOf } from '../../support/cluster/three-nodes.ts';

t.setTimeout(240_000);

interface Frame {
  /** Absent where none has answered. */
  readonly nodes?: readonly string[];
  readonly missing: readonly string[];
  readonly routes?: readonly { readonly name: string; readonly count: number }[];
  readonly metrics?: { readonly gatehouse_sessions: { readonly browser: number } };
}

const COUNTED = 'GET /auth/v1/get_info';

class Live {
  readonly frames: Frame[] = [];
  readonly #request: http.ClientRequest;
  #woken = (): void => undefined;

  constructor(t: Test, { url }: NodeProcess, cookie: string, node: string) {
    const path = `${url}/ProxyAdmin/api/live?node=${encodeURIComponent(node)}`;
    let text = '';
    this.#request = http.get(path, { headers: { Cookie: cookie } }, (answer) => {
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
          const [, data] = /^data: (.*)$/m.exec(text.slice(0, end)) ?? [];
          text = text.slice(end + 2);
          if (data !== undefined) this.frames.push(JSON.parse(data) as Frame);
        }
        this.#woken();
      });
    });
    this.#request.on('error', () => undefined);
    t.teardown(() => this.#request.destroy());
  }

  until(isThere: (frames: readonly Frame[]) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (isThere(this.frames)) resolve();
      };
      this.#woken = check;
      check();
    });
  }

  /** Requests that were counted, in all frames. */
  get counted(): number {
    const rows = this.frames.flatMap(({ routes }) => routes ?? []);
    return rows.filter(({ name }) => name === COUNTED).reduce((sum, { count }) => sum + count, 0);
  }
}

// covers C20
nodesTest(
  'live figures of another node and of all come through the panel of any',
  async (t, { nodes, adminOf }) => {
    const [a, b] = nodes;
    const cookie = await adminOf(a);
    const live = {
      all: new Live(t, a, cookie, '*'),
      b: new Live(t, a, cookie, 'b'),
      a: new Live(t, b, cookie, 'b'),
    };
    for (const each of Object.values(live)) await each.until((frames) => frames.length > 1);
    for (const [index, { url }] of nodes.entries())
      for (let sent = 0; sent <= index; sent += 1) await request(`${url}/auth/v1/get_info`);
    await live.all.until(() => live.all.counted >= 6);
    await live.b.until(() => live.b.counted >= 2);
    await live.a.until(() => live.a.counted >= 2);
    const last = ({ frames }: Live) => frames.at(-1);
    t.same([live.all.counted, live.b.counted, live.a.counted], [6, 2, 2], 'each request once');
    t.match(last(live.all), { nodes: ['a', 'b', 'c'], missing: [] });
    t.match(last(live.b), { nodes: ['b'], missing: [] }, 'of another node');
    t.match(last(live.a), { nodes: ['b'], missing: [] }, 'of the node that answers');
    const sessionsOf = (each: Live) => last(each)?.metrics?.gatehouse_sessions.browser;
    t.equal(sessionsOf(live.all), sessionsOf(live.b), 'sessions are those of the cluster, once');
    t.equal(outcomeOf(await asked(a, cookie, '/ProxyAdmin/api/live?node=z')), '404/1004', 'no such node');
  },
);

nodesTest(
  'a node that does not answer is named, by figures, failed actors and a reload',
  async (t, { nodes, adminOf }) => {
    const [a, b] = nodes;
    const cookie = await adminOf(a);
    t.match(await resultOf(a, cookie, '/ProxyAdmin/api/overview'), { node: 'a', missing: [] });
    b.links.cut();
    t.teardown(async () => {
      b.links.heal();
      await linked(nodes);
    });
    const all = new Live(t, a, cookie, '*');
    const one = new Live(t, a, cookie, 'b');
    await all.until((frames) => frames.some(({ missing }) => missing.includes('b')));
    await one.until((frames) => frames.some(({ missing }) => missing.includes('b')));
    t.match(all.frames.at(-1), { nodes: ['a', 'c'], missing: ['b'] });
    t.same(one.frames.at(-1), { missing: ['b'] });
    t.match(await resultOf(a, cookie, '/ProxyAdmin/api/overview'), { missing: ['b'] });
    t.match(await resultOf(a, cookie, '/ProxyAdmin/api/actors'), { failing: [], missing: ['b'] });
    const reload = await resultOf(a, cookie, '/ProxyAdmin/api/reload', {});
    t.match(reload['notReloaded'], [{ node: 'b', reason: 'noAnswer', faults: [] }]);
    b.links.heal();
    await all.until((frames) => frames.at(-1)?.nodes?.length === 3);
  },
);

function fileOf({ gateway }: NodeProcess): string {
  const { spawnargs } = gateway.process;
  return spawnargs[spawnargs.indexOf('--config') + 1] ?? '';
}

// covers C21
nodesTest(
  'a reload at one node reaches all, and names a node whose file has faults',
  async (t, { nodes, adminOf }) => {
    const [a, b, c] = nodes;
    const cookie = await adminOf(a);
    const files = nodes.map((node) => ({ file: fileOf(node), text: readFileSync(fileOf(node), 'utf8') }));
    const toolsAt = async (node: NodeProcess) => {
      const lists = (await resultOf(node, cookie, '/ProxyAdmin/api/catalog')) as unknown as Json[];
      return Number(lists.find(({ caller }) => String(caller) === 'McpVerified')?.['tools']);
    };
    const before = await toolsAt(a);
    const restored = async () => {
      for (const { file, text } of files) writeFileSync(file, text);
      return await resultOf(a, cookie, '/ProxyAdmin/api/reload', {});
    };
    for (const [index, { file, text }] of files.entries()) {
      const configuration = JSON.parse(text) as { McpTools: Record<string, object> };
      const [tool] = Object.values(configuration.McpTools);
      // The file of b names a module that there is not.
      const added = index === 1 ? { ...tool, endpoint: 'nowhere:/x' } : tool;
      writeFileSync(
        file,
        JSON.stringify({ ...configuration, McpTools: { ...configuration.McpTools, added } }),
      );
    }
    const reload = await resultOf(a, cookie, '/ProxyAdmin/api/reload', {});
    t.match(reload['notReloaded'], [
      { node: 'b', reason: 'refused', faults: [{ path: /^McpTools\.added/ }] },
    ]);
    t.same([await toolsAt(a), await toolsAt(b), await toolsAt(c)], [before + 1, before, before + 1]);
    const audit = (await resultOf(
      a,
      cookie,
      '/ProxyAdmin/api/audit?event=admin.reload',
    )) as unknown as Json[];
    t.match(audit[0]?.['fields'], { outcome: 'ok', notReloaded: 'b' });
    const refusal = await asked(b, await adminOf(b), '/ProxyAdmin/api/reload', {});
    t.equal(refusal.status, 409);
    t.match(refusal.json['error'], { faults: [{ path: /^McpTools\.added/ }] });
    t.same((await restored())['notReloaded'], []);
    t.same([await toolsAt(a), await toolsAt(b), await toolsAt(c)], [before, before, before]);
  },
);

/** The link that a node has printed; undefined where its start printed none. */
async function linkOf({ gateway }: NodeProcess): Promise<string | undefined> {
  await untilHolds(() => /^For an MCP host/m.test(gateway.output().stdout));
  return /\/ProxyAdmin\/Setup#([\w-]{43})/.exec(gateway.output().stdout)?.[1];
}

async function passkeyAccount({ url }: NodeProcess): Promise<string> {
  const opened = await challenge(url, 'register');
  const origin = url.replace('127.0.0.1', 'localhost');
  const credential = create(makePasskey('ES256'), { challenge: opened.challenge, origin, counter: 0 });
  const body = { challengeId: opened.challengeId, code: opened.code, credential };
  return cookieOf(expectOk('sign-up', await request(`${url}/auth/v1/keys/register_key`, { body })));
}

// covers C7
postgresTest(
  'the set-up link of one node makes the first admin at another, and only one',
  async (t, postgres) => {
    const configuration = { Settings: NO_LIMITS };
    const { a, b } = await startedNodes(t, 2, {
      ...{ postgres, atOnce: true, sandbox: false, configuration },
      cluster: { leaseMilliseconds: 10_000 },
    });
    const links = [await linkOf(a), await linkOf(b)].filter((link) => link !== undefined);
    t.ok(links.length > 0, `${links.length} links of two starts at once`);
    const claim = async (node: NodeProcess, cookie: string, token: string | undefined) =>
      outcomeOf(await asked(node, cookie, '/ProxyAdmin/api/claim', { token }));
    const [first, second] = [await passkeyAccount(a), await passkeyAccount(b)];
    const [maker, other] = (await linkOf(a)) === links[0] ? [a, b] : [b, a];
    t.equal(await claim(other, first, 'unknown'), '410/1114');
    t.equal(await claim(other, first, links[0]), '200', `made at ${maker.name}`);
    for (const node of [a, b])
      t.equal((await asked(node, first, '/ProxyAdmin/api/overview')).status, 200, `admin at ${node.name}`);
    for (const link of links) t.equal(await claim(maker, second, link), '410/1114', 'there is an admin');

    const { stdout } = await runToEnd(['admin', 'recover', '--data', b.dataPath]);
    const [, recovery] = /\/ProxyAdmin\/Recovery#([\w-]{43})/.exec(stdout) ?? [];
    const twice = await Promise.all([claim(a, second, recovery), claim(a, second, recovery)]);
    t.same(twice.sort(), ['200', '410/1114'], 'a recovery made at b is good at a, once');
  },
);
