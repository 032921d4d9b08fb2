/** Floors do the work that they are said to do, and chunks alone are measured without the rest of their upload. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startServer } from '../../bench/measure/children.ts';
import { loadOf } from '../../bench/report/report.ts';
import { startFileGateway } from '../../bench/scenarios/file-gateway.ts';
import { equalWork } from '../../bench/scenarios/floors.ts';
import { RawConnection } from '../../bench/scenarios/transfers/raw-connection.ts';
import { gatewayUnderLoad } from '../../bench/subjects/gateway.ts';
import { startTransferClient } from '../../bench/subjects/transfers.ts';
import { signUp } from '../../kit/agent.ts';
import { benchOf } from './fixtures/bench.ts';

const CHUNK_BYTES = 256 * 1024;
const MIB = 1024 * 1024;
const PATH = '/auth/v1/info';

const SHORT = { durationMs: 50, warmupMs: 50, connections: 2 };

async function answerOf(url: string, cookie: string) {
  const connection = await RawConnection.open(url);
  const { head, text } = await connection.ask('GET', PATH, { Cookie: cookie });
  connection.close();
  const names = head.match(/(?<=\r\n)[^:\r]+(?=:)/g) ?? [];
  const id = /\r\nx-request-id: (\S+)/.exec(head)?.[1] ?? '';
  return { text, names: new Set(names), id };
}

t.test('equal work: bytes and header fields of the gateway, with a request id of its own', async (t) => {
  const bench = benchOf(t, SHORT);
  const { url } = await gatewayUnderLoad(bench);
  const { cookie } = await signUp(url);
  const subject = await equalWork(bench, url, PATH, cookie);
  const load = loadOf((await bench.compare([subject])).subjects[0]?.rounds[0]);
  t.ok((load?.answers ?? 0) > 0 && Object.keys(load?.errors ?? {}).length === 0, 'it answers under load');
  const own = await answerOf(url, cookie);
  const server = await startServer('equal-work', await sampleOf(url, cookie));
  t.teardown(() => server.stop());
  const [first, second] = [await answerOf(server.url, cookie), await answerOf(server.url, cookie)];
  t.equal(first.text, own.text);
  for (const name of own.names) t.ok(first.names.has(name), name);
  t.match(first.id, /^[0-9a-f-]{36}$/);
  t.not(first.id, second.id);
});

async function sampleOf(url: string, cookie: string): Promise<string[]> {
  const connection = await RawConnection.open(url);
  const { head, text } = await connection.ask('GET', PATH, { Cookie: cookie });
  connection.close();
  return [head, text];
}

t.test('bare chunks: all bytes are in the file when the last chunk is answered', async (t) => {
  const folder = t.testdir({});
  const server = await startServer('bare-chunks', [folder]);
  t.teardown(() => server.stop());
  const client = await startTransferClient(benchOf(t, SHORT));
  const plan = { url: server.url, fileBytes: MIB, streams: 1, connectionsPerFile: 1, cookies: [], files: 1 };
  const { bytes } = await client.run({ ...plan, kind: 'chunks', durationMs: 0 });
  t.equal(bytes, 3 * CHUNK_BYTES, 'all but the last chunk');
  const [file = ''] = readdirSync(folder);
  const stored = readFileSync(join(folder, file));
  const piece = Buffer.alloc(CHUNK_BYTES, 'stream 0 of the bench; ');
  t.ok(stored.equals(Buffer.concat([piece, piece, piece])));
});

t.test('v1 chunks: the upload is opened before and completed after what is measured', async (t) => {
  const bench = benchOf(t, SHORT);
  const { url, cookies } = await startFileGateway(bench, 1);
  const client = await startTransferClient(bench);
  const plan = { url, cookies, fileBytes: MIB, streams: 1, connectionsPerFile: 1, files: 1, durationMs: 0 };
  // A second one of the same bytes is refused while the first is open.
  for (let round = 0; round < 2; round += 1) {
    const { bytes, files } = await client.run({ ...plan, kind: 'v1-chunks' });
    t.same({ bytes, files }, { bytes: 3 * CHUNK_BYTES, files: 1 });
  }
  t.equal((await client.run({ ...plan, kind: 'v1' })).bytes, MIB, 'and whole');
});
