/** Limits of downloads, with the program: clients that never read, and a stop during a download. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { launchFor, NO_FILE_LIMITS, type RunningGateway } from '../../../kit/launch.ts';
import { count } from '../../support/depth.ts';
import { uploadStream } from '../../support/files/transfers.ts';

t.setTimeout(120_000);

/** Clients that never read; without the timeout of uWebSockets.js, those with buffers of 512 KB would stay for 143 s. */
const CLIENTS = count(200);
const RSS_BYTES_MAX = (32 + 0.44 * CLIENTS) * 1024 * 1024;
const GONE_MS_MAX = 150_000;

interface Health {
  readonly rssBytes: number;
  readonly parts: { readonly files: Readonly<Record<string, number>> };
}

/** From /health: resident memory, and answers that hold download buffers. */
async function healthOf({ internal }: RunningGateway): Promise<{ rssBytes: number; lent: number }> {
  const { rssBytes, parts } = (await (await fetch(`${internal}/health`)).json()) as Health;
  return { rssBytes, lent: parts.files['v2Downloads_buffers_answers'] ?? 0 };
}

const gateway = await launchFor(t, { args: ['--sandbox'], configuration: { Settings: NO_FILE_LIMITS } });
/** More than the buffers of a connection hold. */
const bytes = randomBytes(20 * 1024 * 1024);
const { code } = await uploadStream(gateway, await signUp(gateway.url), bytes);
const address = `${gateway.url}/auth/v2/file/${code}`;

// covers S10
t.test('clients that never read use bounded memory, are closed, and delay no other client', async (t) => {
  const before = await healthOf(gateway);
  const { hostname, port, pathname } = new URL(address);
  const sockets = Array.from({ length: CLIENTS }, () => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined).once('data', () => socket.pause());
    socket.write(`GET ${pathname} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    return socket;
  });
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  const startMs = performance.now();
  let mostLent = 0;
  let mostRssBytes = 0;
  const served = new Set<number>();
  for (let over = false; !over; ) {
    const { rssBytes, lent } = await healthOf(gateway);
    mostLent = Math.max(mostLent, lent);
    mostRssBytes = Math.max(mostRssBytes, rssBytes - before.rssBytes);
    const short = await fetch(address, { headers: { range: 'bytes=0-99' } });
    served.add((await short.arrayBuffer()).byteLength);
    over = (mostLent === CLIENTS && lent === 0) || performance.now() - startMs > GONE_MS_MAX;
    if (!over) await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
  t.same([...served], [100], 'another client is served');
  t.equal(mostLent, CLIENTS, 'all clients were stalled');
  t.equal((await healthOf(gateway)).lent, 0, `gone after ${Math.round(performance.now() - startMs)} ms`);
  t.ok(mostRssBytes < RSS_BYTES_MAX, `${Math.round(mostRssBytes / 1024)} KiB more memory`);
});

t.test('a stop lets a running download complete', async (t) => {
  const response = await fetch(address);
  const stopped = gateway.stop();
  t.ok(Buffer.from(await response.arrayBuffer()).equals(bytes));
  t.match(await stopped, { code: 0 });
});
