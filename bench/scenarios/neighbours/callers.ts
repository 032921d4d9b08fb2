/** Two callers beside each other: one that holds or floods, and one whose every call is timed. */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { oneConnection, sendHttp } from '../../../kit/http.ts';
import { SECOND_MS } from '../../../src/domain/time.ts';
import { Latencies } from '../../load/latency.ts';
import type { Sample } from '../../measure/measure.ts';
import { KeptConnection } from '../mixed/kept-connection.ts';
import type { RawConnection } from '../transfers/raw-connection.ts';

/** A call without a good answer counts as one that took so long: no answer must not look like a fast one. */
const TIMEOUT_MS = 5 * SECOND_MS;
/** Before a connection that was closed is opened again. */
const REOPEN_MS = SECOND_MS / 4;

/** Rejects unless the answer is good. */
export type Ask = () => Promise<void>;

export interface Pacing {
  readonly perSecond: number;
  readonly durationMs: number;
  /** Time-out of a call; 5 s unless given. */
  readonly timeoutMs?: number;
}

/** Calls in the open loop: each begins when it is due, and its latency counts from then. */
export async function timed(
  ask: Ask,
  { perSecond, durationMs, timeoutMs = TIMEOUT_MS }: Pacing,
): Promise<Sample> {
  const latencies = new Latencies();
  const errors: Record<string, number> = {};
  let answers = 0;
  const one = async (dueMs: number) => {
    const fault = await within(ask(), timeoutMs).then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    latencies.record((fault === undefined ? performance.now() - dueMs : timeoutMs) * SECOND_MS);
    if (fault === undefined) answers += 1;
    else errors[fault] = (errors[fault] ?? 0) + 1;
  };
  const startMs = performance.now();
  const calls: Promise<void>[] = [];
  for (let call = 0; call < (perSecond * durationMs) / SECOND_MS; call += 1) {
    const dueMs = startMs + (call * SECOND_MS) / perSecond;
    await elapse(dueMs - performance.now());
    calls.push(one(dueMs));
  }
  await Promise.all(calls);
  const elapsedMs = performance.now() - startMs;
  const ratePerSecond = (answers / elapsedMs) * SECOND_MS;
  const details = { answers, answersInAll: answers, latencyUs: latencies.summary(), errors, perSecond: [] };
  return { ratePerSecond, details };
}

async function within(work: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('timeout')), timeoutMs);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function elapse(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, durationMs)));
}

/** A caller with kept connections, as many as it has calls under way. */
export class Caller {
  readonly #url: string;
  readonly #free: KeptConnection[] = [];

  constructor(url: string) {
    this.#url = url;
  }

  async use<Outcome>(work: (connection: RawConnection) => Promise<Outcome>): Promise<Outcome> {
    const kept = this.#free.pop() ?? new KeptConnection(this.#url);
    try {
      return await kept.use(work);
    } finally {
      this.#free.push(kept);
    }
  }
}

export interface Held {
  open(): number;
  release(): void;
}

/**
 * Connections that send a text and nothing more, from an address of the loopback network; one that is closed is opened
 * again. Resolves when each was open or was refused once.
 */
export async function hold(
  url: string,
  count: number,
  { text = '', localAddress = '127.0.0.1' } = {},
): Promise<Held> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let released = false;
  const open = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port), localAddress });
      socket.on('error', () => undefined);
      sockets.add(socket);
      socket.once('connect', () => {
        if (text !== '') socket.write(text, 'latin1');
        resolve();
      });
      socket.resume();
      socket.once('close', () => {
        sockets.delete(socket);
        resolve();
        setTimeout(() => {
          if (!released) void open();
        }, REOPEN_MS).unref();
      });
    });
  await Promise.all(Array.from({ length: count }, open));
  return {
    open: () => [...sockets].filter(({ pending }) => !pending).length,
    release() {
      released = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Opens a stream of events, from an address of the loopback network, and leaves with its first bytes. */
export async function streamFrom(localAddress: string, url: string, cookie: string): Promise<void> {
  const call = request(url, { agent: false, localAddress, headers: { Cookie: cookie } });
  call.end();
  const [response] = await Promise.race([once(call, 'response'), failing(call)]);
  const [first] = await once(response, 'data');
  call.destroy();
  // Without room the gateway names another time to come back.
  if (response.statusCode !== 200 || !String(first).includes('retry: 3000'))
    throw new Error(`no room: ${response.statusCode}`);
}

function failing(call: ReturnType<typeof request>): Promise<never> {
  return new Promise((_resolve, reject) => {
    call.on('error', (error: NodeJS.ErrnoException) => reject(new Error(error.code ?? error.message)));
  });
}

/** GETs one after the other over a kept connection, whatever they are answered. */
export async function repeatFrom(localAddress: string, url: string, times: number): Promise<void> {
  const agent = oneConnection();
  for (let call = 0; call < times; call += 1) await sendHttp(url, { agent, localAddress });
  agent.destroy();
}

/** GET over a connection of its own, from an address of the loopback network. */
export async function getFrom(localAddress: string, url: string): Promise<void> {
  const { status } = await sendHttp(url, { localAddress });
  if (status !== 200) throw new Error(`status ${status}`);
}

/** A body in pieces, no faster than the line of its sender. */
export async function sendSlowly(
  url: string,
  headers: Readonly<Record<string, string>>,
  { sizeBytes, bytesPerSecond, pieceBytes }: Record<'sizeBytes' | 'bytesPerSecond' | 'pieceBytes', number>,
): Promise<void> {
  const call = request(url, {
    agent: false,
    method: 'POST',
    headers: { ...headers, 'Content-Length': sizeBytes },
  });
  const answered = checked(call);
  // Awaited below; a refusal in the midst of the body is no stray rejection.
  answered.catch(() => undefined);
  const startMs = performance.now();
  for (let sent = 0; sent < sizeBytes && !call.destroyed; sent += pieceBytes) {
    await elapse(startMs + (sent * SECOND_MS) / bytesPerSecond - performance.now());
    if (!call.write(Buffer.alloc(Math.min(pieceBytes, sizeBytes - sent), 'a slow line; ')))
      await Promise.race([once(call, 'drain'), answered]);
  }
  call.end();
  await answered;
}

function checked(call: ReturnType<typeof request>): Promise<void> {
  return new Promise((resolve, reject) => {
    call.once('error', (error: NodeJS.ErrnoException) => reject(new Error(error.code ?? error.message)));
    call.once('response', (response) => {
      response.resume();
      response.once('close', () => {
        if (response.statusCode === 200 && response.complete) resolve();
        else reject(new Error(`status ${response.statusCode}`));
      });
    });
  });
}
