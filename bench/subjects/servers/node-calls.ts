/**
 * Two nodes of calls without actors: `node node-calls.js` answers and says its two ports, that of links and that of bare
 * frames; `node node-calls.js PORT PORT` calls the other on command.
 */
import { randomBytes } from 'node:crypto';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { linkKeys } from '../../../src/io/cluster/handshake.ts';
import { PeerLinks } from '../../../src/io/cluster/peers.ts';
import { answerBare, openBare } from '../bare-frames.ts';
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
