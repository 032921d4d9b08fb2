/** Processor time that a program's main thread uses in one turn of its event loop, whatever else the machine does. */
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';

export interface Sent {
  readonly method: string;
  /** As it is written in the head, query included. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export class LoopMeter {
  readonly #pid: number;
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #pingAgent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(pid: number, url: string) {
    this.#pid = pid;
    this.#url = new URL(url);
  }

  /** Milliseconds of processor time of the main thread since its start. */
  usedMs(): number {
    const [nanoseconds] = readFileSync(`/proc/${this.#pid}/task/${this.#pid}/schedstat`, 'utf8').split(' ');
    return Number(nanoseconds) / 1e6;
  }

  /** The status of the answer; 0 when the connection ended without one. Long-lived answers are left. */
  send(sent: Sent): Promise<number> {
    return this.#ask(sent, this.#agent);
  }

  /**
   * The most that the main thread used between two answers to a second caller, while `work` ran. Each of its requests needs
   * a turn of the loop, so this is at least the longest turn and at most two turns.
   */
  async longestTurnMs(work: () => Promise<unknown>): Promise<number> {
    let running = true;
    let longest = 0;
    let before = this.usedMs();
    const done = work().finally(() => {
      running = false;
    });
    while (running) {
      await this.#ask({ method: 'GET', path: '/health?plain=1' }, this.#pingAgent);
      const after = this.usedMs();
      longest = Math.max(longest, after - before);
      before = after;
    }
    await done;
    return longest;
  }

  close(): void {
    this.#agent.destroy();
    this.#pingAgent.destroy();
  }

  #ask({ method, path, headers = {}, body }: Sent, agent: Agent): Promise<number> {
    const { hostname, port } = this.#url;
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
