/**
 * Two nodes of calls without actors: `node node-calls.js` answers and says its two ports, that of links and that of bare
 * frames; `node node-calls.js PORT PORT` calls the other on command.
 */
import { randomBytes } from 'node:crypto';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { FRAME_BYTES_MAX, FrameReader, packFrame, unpackFrame } from '../../../src/io/cluster/frames.ts';
import { linkKeys } from '../../../src/io/cluster/handshake.ts';
import { PeerLinks } from '../../../src/io/cluster/peers.ts';
import { type ClosedLoop, closedLoop } from '../turn.ts';
import { tellParent } from './listen.ts';
import { work } from './working.ts';

const HOST = '127.0.0.1';
const COMMAND = { type: 'touchSession', sessionId: '1234567890123456789', seenMs: 1_767_225_600_000 };
const answer = () => ({ allowed: true, count: 7 });

function linksOf(node: number, onOpened: () => void = () => undefined): PeerLinks {
  return new PeerLinks({
    self: () => ({ node, incarnation: 1, logId: 'bench', version: 'bench' }),
    keys: linkKeys(['a secret for one run']),
    randomBytes,
    schedule: nodeSchedule,
    transport: { plain: true },
    random: Math.random,
    verbs: { ask: answer },
    position: () => 1,
    listener: { onPush: () => undefined, onApplied: () => undefined },
    observer: {
      onOpened: (_peer, outgoing) => outgoing && onOpened(),
      onClosed: () => undefined,
      onFailed: () => undefined,
      onRefused: () => undefined,
      onBug: () => undefined,
    },
  });
}

async function serve(): Promise<void> {
  const port = await linksOf(2).listen({ host: HOST, port: 0 });
  tellParent(`${port} ${await answerBare(answer)}`);
}

async function call(linkPort: number, barePort: number): Promise<void> {
  const bare = await openBare(barePort);
  const links = await new Promise<PeerLinks>((resolve) => {
    const opened = linksOf(1, () => resolve(opened));
    opened.follow(new Map([[2, { host: HOST, port: linkPort }]]));
  });
  const CALLS = {
    link: () => links.call(2, 'ask', 'user', '1234567890123456789', COMMAND, null, null),
    bare: () => bare('ask', 'user', '1234567890123456789', COMMAND, null, null),
  };
  work<ClosedLoop & { readonly kind: keyof typeof CALLS }>('calls', async ({ kind, ...loop }) => {
    const { cpuMs: callerMs, ...part } = await closedLoop(loop, CALLS[kind]);
    return { ...part, callerMs };
  });
}

const [linkPort, barePort] = process.argv.slice(2).map(Number);
if (linkPort === undefined || barePort === undefined) await serve();
else await call(linkPort, barePort);

/** Frames of one event-loop tick leave in one write. */
function joining(socket: Socket): (value: unknown) => void {
  let joined: Buffer[] = [];
  return (value) => {
    if (joined.length === 0)
      setImmediate(() => {
        socket.write(Buffer.concat(joined));
        joined = [];
      });
    joined.push(packFrame(value));
  };
}

function reading(socket: Socket, onValue: (value: unknown[]) => void): void {
  const reader = new FrameReader(FRAME_BYTES_MAX);
  socket.setNoDelay(true);
  socket.on('data', (chunk: Buffer) =>
    reader.read(chunk, (frame) => onValue(unpackFrame(frame) as unknown[])),
  );
}

/** Answers each frame; the port. */
function answerBare(answer: (...args: unknown[]) => unknown): Promise<number> {
  const server = createServer((socket) => {
    const send = joining(socket);
    socket.on('error', () => socket.destroy());
    reading(socket, ([id, ...args]) => send([id, answer(...args)]));
  });
  return new Promise((resolve) => {
    server.listen(0, HOST, () => resolve((server.address() as AddressInfo).port));
  });
}

async function openBare(port: number): Promise<(...args: unknown[]) => Promise<unknown>> {
  const socket = connect({ host: HOST, port });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const waiting = new Map<unknown, (value: unknown) => void>();
  const send = joining(socket);
  reading(socket, ([id, value]) => {
    waiting.get(id)?.(value);
    waiting.delete(id);
  });
  let lastId = 0;
  return (...args) =>
    new Promise((resolve) => {
      lastId += 1;
      waiting.set(lastId, resolve);
      send([lastId, ...args]);
    });
}
