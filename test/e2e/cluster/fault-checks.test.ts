/** The checks of the faults over three processes find what they look for: lost, doubled and stale state. */

import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { logIn, newKey, request } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { listenFor } from '../../../kit/http.ts';
import { launchFor, NO_LIMITS, type RunningGateway } from '../../../kit/launch.ts';
import { seededNumbers } from '../../../kit/seeded-numbers.ts';
import { openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import { type Operation, REPLICA_KEY } from '../../../src/actors/runtime/journal/port.ts';
import { AccountClient } from '../../../tools/cluster/faults/account.ts';
import { NodeCalls } from '../../../tools/cluster/faults/calls.ts';
import { Contest } from '../../../tools/cluster/faults/contest.ts';
import { FaultHistory } from '../../../tools/cluster/faults/history.ts';
import { compareReplicas } from '../../../tools/cluster/faults/replicas.ts';
import type { HeldSession } from '../../../tools/cluster/faults/sessions.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

/** In an account with one key and no application, this number chooses the step that contends for a key. */
const CONTEND = 0.45;

/** An account whose client knows what it holds; the gateway is in place of the nodes. */
async function startClient(gateway: RunningGateway) {
  const node = { name: 'a', url: gateway.url } as NodeProcess;
  const history = new FaultHistory();
  const calls = new NodeCalls([node], history);
  const client = await AccountClient.create({ calls, random: seededNumbers(1) });
  for (let steps = 0; steps < 12; steps += 1) await client.step();
  await client.verify(node);
  t.equal(calls.counts.stale, 0, 'all is well');
  const { url } = gateway;
  const act = (path: string, body: object) =>
    request(`${url}${path}`, { headers: { Cookie: client.home.token }, body });
  return { url, node, client, calls, history, act };
}

async function keysAndNames(t: Test, gateway: RunningGateway): Promise<void> {
  const { node, client, calls, act, history } = await startClient(gateway);
  const app = await act('/auth/v1/app/upsert_usr_app', { name: 'extra', url: 'https://extra.example' });
  await t.rejects(client.verify(node), /applications: missing none, not acknowledged or doubled \d+ extra/);
  await act('/auth/v1/app/remove', { appId: String(app.json['result']?.['id']) });
  await client.verify(node);
  const spare = [...client.keys.values()].find(({ key }) => key !== client.first);
  await act('/auth/v1/keys/remove_key', { keyId: spare?.id });
  await t.rejects(client.verify(node), new RegExp(`keys: missing ${spare?.id} `));
  t.equal(calls.counts.stale, 2);
  t.match(history.about(client.who).join('\n'), / ms \S+: \S*\/auth\/v1\/keys\/user_keys at a: 200 /);
}

async function sessions(t: Test, gateway: RunningGateway): Promise<void> {
  const { url, node, client } = await startClient(gateway);
  const cookie = (await logIn(url, client.first)).headers.get('set-cookie') ?? '';
  const token = cookie.split(';')[0] ?? '';
  const session: HeldSession = { kind: 'browser', keyId: '', sinceMs: 0, token, state: 'closed' };
  await t.rejects(client.readSession(session, node), /stale at a: a closed browser session is admitted/);
  const lost: HeldSession = { ...session, token: `${token.slice(0, -4)}AAAA`, state: 'live' };
  await t.rejects(client.readSession(lost, node), /stale at a: a live browser session is refused/);
  await client.readSession({ ...lost, state: 'closing' }, node);
  const mcp = [...client.keys.values()].find(({ mcpAccess }) => mcpAccess);
  client.removedKeys.push(mcp?.key ?? newKey());
  await t.rejects(client.verify(node), /stale at a: a removed key is admitted/);
}

/** A server before a gateway that loses the answers to the first registration with a status. Returns its address. */
async function startLossy(t: Test, url: string, status: number): Promise<string> {
  let isLost = false;
  const server = createServer(async (asked, answer) => {
    const { method = '', headers } = asked;
    const body = await text(asked);
    const { cookie = '', 'idempotency-key': key = '' } = headers as Record<string, string>;
    const answered = await fetch(`${url}${asked.url}`, {
      method,
      headers: {
        cookie,
        'content-type': 'application/json',
        ...(key === '' ? {} : { 'idempotency-key': key }),
      },
      ...(body === '' ? {} : { body }),
    });
    if (!isLost && answered.status === status && asked.url === '/auth/v1/keys/register_key') {
      isLost = true;
      answer.destroy();
      return;
    }
    answer.writeHead(answered.status, { 'content-type': 'application/json' });
    answer.end(await answered.text());
  });
  return (await listenFor(t, server)).url;
}

async function lostRefusal(t: Test, gateway: RunningGateway): Promise<void> {
  const [history, contest] = [new FaultHistory(), new Contest()];
  const contending = () => CONTEND;
  const direct = new NodeCalls([{ name: 'a', url: gateway.url } as NodeProcess], history);
  const winner = await AccountClient.create({ calls: direct, random: contending, contest });
  const url = await startLossy(t, gateway.url, 409);
  const nodes = [{ name: 'a', url: gateway.url } as NodeProcess];
  const calls = new NodeCalls(nodes, history);
  const loser = await AccountClient.create({ calls, random: contending, contest });
  await winner.step();
  Object.assign(nodes[0] ?? {}, { url });
  await loser.step();
  t.equal(contest.requireWinners(), 1, 'one key was refused');
  t.match(
    history.about(loser.who).join('\n'),
    /register_key at a: no answer\n.*register_key at a: 401[\s\S]*: 409 /,
  );
}

t.test('faults of one gateway in place of the nodes', async (t) => {
  const gateway = await launchFor(t, { configuration: { Settings: NO_LIMITS } });
  await t.test('faults: a key that is gone or came from elsewhere, and an unknown name, are found', (t) =>
    keysAndNames(t, gateway),
  );
  await t.test(
    'faults: a session that lives on, a lost one, and a removed key that logs in, are found',
    (t) => sessions(t, gateway),
  );
  await t.test(
    'faults: a refusal whose answer is lost is no broken promise, and its repeat is a verdict',
    (t) => lostRefusal(t, gateway),
  );
});

async function writeReplica(folder: string, position: number, owner: string): Promise<string> {
  mkdirSync(folder);
  const journal = await openJournal({ directory: folder, stepBytes: 1024 * 1024 });
  const applied = [position, new Uint8Array(32), [], 'log'];
  const rows: readonly Operation[] = [
    { op: 'meta', key: REPLICA_KEY, row: journal.pack(applied) },
    { op: 'index', index: 'publicKey', key: 'key', owner },
    { op: 'append', kind: 'user', id: '7', seq: 1, row: journal.pack([1, [{ type: owner }], [], []]) },
  ];
  await commitRows(journal, rows);
  await journal.close();
  return folder;
}

t.test('faults: replicas that differ, and a key with another owner, are found', async (t) => {
  const folder = temporaryFolder(t);
  const a = await writeReplica(join(folder, 'a'), 5, '7:1:p');
  const same = await writeReplica(join(folder, 'b'), 5, '7:1:p');
  const other = await writeReplica(join(folder, 'c'), 5, '8:1:p');
  const keys = new Map([['key', '7']]);
  t.same(await compareReplicas([a, same], keys), []);
  t.match(await compareReplicas([a, other], keys), [
    /^the replicas differ in journal: /,
    /^the replicas differ in index\/publicKey|publicKey: /,
    'the key key of the account 7 is of 7, 8',
  ]);
  t.same(await compareReplicas([a, same], new Map([['lost', '7']])), [
    'the key lost of the account 7 is of , ',
  ]);
});
