/** A server with many readers: how it is published to, and a round in which each batch waits for the one before. */

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from '../../../kit/launch.ts';
import type { Sample, Subject } from '../../measure/measure.ts';
import { costOfAll } from '../../measure/process-cost.ts';
import type { Build } from '../../subjects/baseline.ts';
import { type FanoutPlan, type FanoutReport, MARK, nowUs } from './fanout-load.ts';
import type { FanoutOrder } from './fanout-process.ts';

/** Readers that are there before memory is measured: code is compiled and the heap has its size. */
const FIRST_CLIENTS = 500;
/** A batch that has not arrived everywhere by then never will. */
const BATCH_TIMEOUT_MS = 30_000;

export interface FanoutServer {
  readonly name: string;
  /** Behind the name of each subject; '' unless it is a baseline. */
  readonly suffix: Build['suffix'];
  readonly pids: readonly number[];
  readonly plan: FanoutPlan;
  /** Hands messages over; each is the text of a JSON object. */
  publish(messages: readonly string[]): Promise<void>;
}

export interface FanoutRound {
  readonly durationMs: number;
  /** Messages that are published together. */
  readonly batch: number;
  readonly sizeBytes: number;
  readonly readers: number;
}

/** A message of about `sizeBytes` with the mark and the moment of its publication. */
export function messageOf(sizeBytes: number): string {
  const head = `{${MARK}${nowUs()},"text":"`;
  return `${head}${'x'.repeat(Math.max(0, sizeBytes - head.length - 2))}"}`;
}

export class FanoutReaders {
  readonly server: FanoutServer;
  readonly #child: ChildProcess;
  /** Resident memory of the server for one more connection; undefined where there is no /proc. */
  rssBytesPerConnection: number | undefined;

  constructor(server: FanoutServer) {
    this.server = server;
    this.#child = fork(fileURLToPath(new URL('./fanout-process.js', import.meta.url)), [], {
      env: plainEnvironment(),
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  async gather(): Promise<void> {
    const { plan } = this.server;
    await this.#order({ do: 'plan', plan });
    const first = Math.min(FIRST_CLIENTS, plan.clients);
    await this.#order({ do: 'connect', clients: first });
    await this.round({ durationMs: 1_000, batch: 1, sizeBytes: 200, readers: first });
    const before = this.#rssBytes();
    await this.#order({ do: 'connect', clients: plan.clients });
    const after = this.#rssBytes();
    if (before !== undefined && after !== undefined && plan.clients > first) {
      this.rssBytesPerConnection = (after - before) / (plan.clients - first);
    }
  }

  /** Warm-up and rounds of a comparison; the readers stay connected. */
  rounds({
    warmupMs,
    ...options
  }: FanoutRound & { readonly warmupMs: number }): Pick<Subject, 'warmUp' | 'round'> {
    return {
      warmUp: () => this.round({ ...options, durationMs: warmupMs }),
      round: () => this.round(options),
    };
  }

  /** Batch after batch for so long, each when the one before has arrived everywhere. */
  async round({ durationMs, batch, sizeBytes, readers }: FanoutRound): Promise<Sample> {
    await this.#order({ do: 'begin' });
    const cpuBefore = this.#cpuMs();
    const startedMs = performance.now();
    let batches = 0;
    do {
      batches += 1;
      const arrived = this.#order({ do: 'until', messages: batches * batch * readers });
      await this.server.publish(Array.from({ length: batch }, () => messageOf(sizeBytes)));
      await arrived;
    } while (performance.now() - startedMs < durationMs);
    const elapsedMs = performance.now() - startedMs;
    const cpuMs = this.#cpuMs() - cpuBefore;
    const report = await this.#order({ do: 'report' });
    if (report === undefined) throw new Error('no report');
    const { messages, latencyUs, probeUs, generatorBusy, closed } = report;
    return {
      ratePerSecond: messages / (elapsedMs / 1_000),
      details: {
        answers: messages,
        answersInAll: messages,
        latencyUs,
        probeUs,
        generatorBusy,
        errors: closed > 0 ? { closed } : {},
        perSecond: [],
        sample: undefined,
        cpuMs,
        messagesPerCpuSecond: messages / (cpuMs / 1_000),
      },
    };
  }

  async leave(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.kill('SIGKILL');
    });
  }

  #order(order: FanoutOrder): Promise<FanoutReport | undefined> {
    return new Promise((resolve, reject) => {
      const wait = order.do === 'connect' ? 4 * BATCH_TIMEOUT_MS : BATCH_TIMEOUT_MS;
      const timer = setTimeout(
        () => reject(new Error(`${this.server.name}: ${order.do} took too long`)),
        wait,
      );
      this.#child.once('message', (answer: { report?: FanoutReport; error?: string }) => {
        clearTimeout(timer);
        if (answer.error === undefined) resolve(answer.report);
        else reject(new Error(`${this.server.name}: ${answer.error}`));
      });
      this.#child.send(order, (error) => {
        if (error === null) return;
        clearTimeout(timer);
        reject(error);
      });
    });
  }

  #rssBytes(): number | undefined {
    return costOfAll(this.server.pids)?.rssBytes;
  }

  #cpuMs(): number {
    return costOfAll(this.server.pids)?.cpuMs ?? Number.NaN;
  }
}
