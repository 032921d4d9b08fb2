import t, { type Test } from 'tap';
import { type Person, request, signUp } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { agree, disconnect, endAccess } from '../../../kit/consent.ts';
import { pickPort } from '../../../kit/free-port.ts';
import { HIGH_LIMITS, launch } from '../../../kit/launch.ts';
import {
  AI_SDK,
  endStoredAccess,
  INSPECTOR,
  MCP_REMOTE,
  type Peer,
  startPeer,
  unavailable,
} from '../../support/connect/peers.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { shared } from '../../support/shared.ts';

t.setTimeout(180_000);

const AVAILABLE = /available\\*":\\*"1000\.00/;
const AUTHORIZE = /(http\S+\/connect\/authorize\?\S+)/;
/** The clients ask for all metadata again at each step. */
const TOOL = 'wallet_get_balance';

interface Setting {
  readonly url: string;
  readonly person: Person;
  readonly home: string;
  readonly start: (args: readonly string[]) => Peer;
}

/** Each test has a person of its own. */
const standing = shared(
  () => launch({ args: ['--sandbox'], configuration: { Settings: HIGH_LIMITS } }),
  (gateway) => gateway.stop(),
);

async function prepare(test: Test): Promise<Setting> {
  const gateway = await standing(t);
  const home = temporaryFolder(test);
  const start = (args: readonly string[]) => stopAfter(test, startPeer(args, home));
  return { url: gateway.url, person: await signUp(gateway.url), home, start };
}

t.test(
  'connect, @ai-sdk/mcp: consent, call, refresh, revocation, consent',
  { skip: unavailable },
  async (t) => {
    const { url, person, start } = await prepare(t);
    const peer = start([AI_SDK, `${url}/connect/mcp`]);
    const consent = async () => {
      const [, address = ''] = await peer.next(AUTHORIZE);
      await peer.next(/failed .*\n/);
      peer.tell(String(await agree(url, person, address)));
      const [, tokens = ''] = await peer.next(/tokens (.*)\n/);
      t.match((await peer.next(/result .*\n/))[0], AVAILABLE);
      return JSON.parse(tokens) as { clientId: string; token: string };
    };
    const { clientId, token } = await consent();
    await endAccess(url, clientId, token);
    peer.tell('call');
    await peer.next(/tokens .*\n/);
    t.match((await peer.next(/result .*\n/))[0], AVAILABLE, 'after a refresh');
    await disconnect(url, person);
    peer.tell('call');
    await consent();
  },
);

t.test(
  'connect, mcp-remote: consent, call, refresh, revocation, consent',
  { skip: unavailable },
  async (t) => {
    const { url, person, home, start } = await prepare(t);
    const port = String(await pickPort());
    const run = () => start([MCP_REMOTE, `${url}/connect/mcp`, port]);
    const call = (peer: Peer, id: number) => {
      peer.tell(
        JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: TOOL, arguments: {} } }),
      );
      return peer.next(new RegExp(`"id":${id},[^\\n]*\\n|[^\\n]*"id":${id}}\\n`));
    };
    const open = (peer: Peer) => {
      const clientInfo = { name: 'test', version: '1.0.0' };
      const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo };
      peer.tell(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
    };
    const consent = async (peer: Peer) => {
      const [, address = ''] = await peer.next(AUTHORIZE);
      const callback = await agree(url, person, address);
      await peer.next(/Waiting for authorization/);
      t.equal((await request(callback.href)).status, 200);
      await peer.next(/Proxy established/);
      open(peer);
      t.match((await call(peer, 1))[0], AVAILABLE);
    };
    const peer = run();
    await consent(peer);
    await endStoredAccess(url, home);
    t.match((await call(peer, 2))[0], AVAILABLE, 'after a refresh');
    await peer.stop();
    await disconnect(url, person);
    await consent(run());
  },
);

t.test(
  'connect, inspector: consent, call, refresh, revocation, consent',
  { skip: unavailable },
  async (t) => {
    const { url, person, home, start } = await prepare(t);
    const callback = `http://127.0.0.1:${await pickPort()}/oauth/callback`;
    const target = ['--cli', `${url}/connect/mcp`, '--callback-url', callback, '--format', 'json'];
    const call = () => start([INSPECTOR, ...target, '--method', 'tools/call', '--tool-name', TOOL]);
    const consent = async () => {
      const peer = call();
      const [, address = ''] = await peer.next(AUTHORIZE);
      t.equal((await request((await agree(url, person, address)).href)).status, 200);
      t.equal(await peer.exited, 0, peer.text());
      t.match(peer.text(), AVAILABLE);
    };
    const again = async (title: string) => {
      const peer = call();
      t.equal(await peer.exited, 0, peer.text());
      t.match(peer.text(), AVAILABLE, title);
      t.notMatch(peer.text(), AUTHORIZE, title);
    };
    await consent();
    await again('with the stored token');
    await endStoredAccess(url, home);
    await again('after a refresh');
    await disconnect(url, person);
    await consent();
  },
);
