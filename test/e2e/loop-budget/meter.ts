/** Processor time that a program's main thread uses in one turn of its event loop, whatever else the machine does. */
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { oneConnection } from '../../../kit/http.ts';
import type { RunningGateway } from '../../../kit/launch.ts';

export interface Sent {
  readonly method: string;
  /** Path as it is written in the head, query included. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A text whose parsing is the floor of a machine: 0.7 MB of small objects. */
const FLOOR_TEXT = `{${Array.from({ length: 20_000 }, (_, index) => `"member${index}":{"a":[1,2,"ß${index}"]}`).join(',')}}`;
/** Milliseconds of processor time for `FLOOR_TEXT` on the machine that the budget of a turn was set for. */
const FLOOR_MS = 13;
const FLOOR_RUNS = 3;
const SLOWNESS_MAX = 3;

/** Measures how many times slower than the machine of the budget this one is at the moment: 1 to 3. */
export function slowness(): number {
  const runs = Array.from({ length: FLOOR_RUNS }, () => {
    const before = threadUsedMs(process.pid);
    JSON.parse(FLOOR_TEXT);
    return threadUsedMs(process.pid) - before;
  }).sort((a, b) => a - b);
  const median = runs[Math.floor(FLOOR_RUNS / 2)] as number;
  return Math.min(SLOWNESS_MAX, Math.max(1, median / FLOOR_MS));
}

/** Milliseconds of processor time of a process's main thread since its start. */
function threadUsedMs(pid: number | undefined): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

/** Loaded into the program: measures every tick of its event loop. */
export const TICK_METER = fileURLToPath(new URL('./tick-meter.cjs', import.meta.url));

export class LoopMeter {
  readonly #gateway: Pick<RunningGateway, 'process' | 'output'>;
  readonly #url: URL;
  readonly #agent = oneConnection();

  /** `gateway` was started with `TICK_METER`; requests go to this address of it. */
  constructor(gateway: Pick<RunningGateway, 'process' | 'output'>, url: string) {
    this.#gateway = gateway;
    this.#url = new URL(url);
  }

  /** Milliseconds of processor time of the main thread since its start. */
  usedMs(): number {
    return threadUsedMs(this.#gateway.process.pid);
  }

  /** The most that the main thread used in one tick of its loop, while `work` ran. */
  async longestTickMs(work: () => Promise<unknown>): Promise<number> {
    await this.#signalled(/measuring ticks\n/g);
    await work();
    const [, longest] = await this.#signalled(/longest tick ([0-9.]+) ms\n/g);
    return Number(longest);
  }

  /** Sends the signal and waits for one more match of what the meter says. */
  async #signalled(said: RegExp): Promise<RegExpMatchArray> {
    const { process, output } = this.#gateway;
    const before = [...output().stderr.matchAll(said)].length;
    process.kill('SIGUSR2');
    for (;;) {
      const found = [...output().stderr.matchAll(said)][before];
      if (found !== undefined) return found;
      // A turn of the loop of both processes.
      await this.send({ method: 'GET', path: '/health?plain=1' });
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  /** The status of the answer; 0 when the connection ended without one. Long-lived answers are left. */
  send({ method, path, headers = {}, body }: Sent): Promise<number> {
    const { hostname, port } = this.#url;
    const agent = this.#agent;
    return new Promise((resolve) => {
      const outgoing = request(
        { hostname, port, method, path, headers, agent },
        (answer: IncomingMessage) => {
          const status = answer.statusCode ?? 0;
          if (/event-stream/.test(answer.headers['content-type'] ?? '')) {
            outgoing.destroy();
            resolve(status);
            return;
          }
          answer.on('error', () => resolve(status));
          answer.resume().once('close', () => resolve(status));
        },
      );
      outgoing.once('error', () => resolve(0));
      outgoing.end(body);
    });
  }
}
