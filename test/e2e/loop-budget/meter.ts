/** Processor time that a program's main thread uses in one turn of its event loop, whatever else the machine does. */
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { RunningGateway } from '../../../kit/launch.ts';

export interface Sent {
  readonly method: string;
  /** As it is written in the head, query included. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Loaded into the program: measures every tick of its event loop. */
export const TICK_METER = fileURLToPath(new URL('./tick-meter.cjs', import.meta.url));

export class LoopMeter {
  readonly #gateway: Pick<RunningGateway, 'process' | 'output'>;
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  /** `gateway` was started with `TICK_METER`; requests go to this address of it. */
  constructor(gateway: Pick<RunningGateway, 'process' | 'output'>, url: string) {
    this.#gateway = gateway;
    this.#url = new URL(url);
  }

  /** Milliseconds of processor time of the main thread since its start. */
  usedMs(): number {
    const { pid } = this.#gateway.process;
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
    return Number(nanoseconds) / 1e6;
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
