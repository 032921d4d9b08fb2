/**
 * A server with many readers, or several servers of the same messages: how they are published to, and a round in which
 * each batch waits for the one before.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from '../../../kit/launch.ts';
import { stopChild } from '../../measure/children.ts';
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
  /** Plan of each group of readers, which is a process. */
  readonly plans: readonly FanoutPlan[];
  /** Hands messages over; each is the text of a JSON object. */
  publish(messages: readonly string[]): Promise<void>;
}

export interface FanoutRound {
  readonly durationMs: number;
  /** Messages that are published together. */
  readonly batch: number;
  readonly sizeBytes: number;
}

/** A message of about `sizeBytes` with the mark and the moment of its publication. */
export function messageOf(sizeBytes: number): string {
  const head = `{${MARK}${nowUs()},"text":"`;
  return `${head}${'x'.repeat(Math.max(0, sizeBytes - head.length - 2))}"}`;
}

export class FanoutReaders {
  readonly server: FanoutServer;
  readonly #groups: readonly Group[];
  /** Resident memory of the server for one more connection; undefined where there is no /proc. */
  rssBytesPerConnection: number | undefined;

  constructor(server: FanoutServer) {
    this.server = server;
    this.#groups = server.plans.map((plan) => new Group(server.name, plan));
  }

  async gather(): Promise<void> {
    await this.#each((group) => group.order({ do: 'plan', plan: group.plan }));
    const first = await this.#connect(FIRST_CLIENTS);
    await this.round({ durationMs: 1_000, batch: 1, sizeBytes: 200 });
    const before = this.#rssBytes();
    const all = await this.#connect(Number.POSITIVE_INFINITY);
    const after = this.#rssBytes();
    if (before !== undefined && after !== undefined && all > first) {
      this.rssBytesPerConnection = (after - before) / (all - first);
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
  async round({ durationMs, batch, sizeBytes }: FanoutRound): Promise<Sample> {
    const early = await this.unasked();
    await this.#each((group) => group.order({ do: 'begin' }));
    const cpuBefore = this.#cpuMs();
    const startedMs = performance.now();
    let batches = 0;
    do {
      batches += 1;
      const published = batches * batch;
      await Promise.all([
        this.#each((group) => group.order({ do: 'until', messages: published * group.connected })),
        this.server.publish(Array.from({ length: batch }, () => messageOf(sizeBytes))),
      ]);
    } while (performance.now() - startedMs < durationMs);
    const elapsedMs = performance.now() - startedMs;
    const cpuMs = this.#cpuMs() - cpuBefore;
    const reports = await this.#reports();
    const messages = sumOf(reports, (report) => report.messages);
    const [slowest] = reports.toSorted((one, other) => other.latencyUs.p99 - one.latencyUs.p99);
    const faults = {
      closed: sumOf(reports, ({ closed }) => closed),
      uneven: sumOf(reports, ({ uneven }) => uneven),
      unasked: early + messages - batches * batch * this.#clients,
    };
    return {
      ratePerSecond: messages / (elapsedMs / 1_000),
      details: {
        answers: messages,
        answersInAll: messages,
        events: batches * batch,
        latencyUs: slowest?.latencyUs,
        probeUs: slowest?.probeUs,
        generatorBusy: Math.max(...reports.map(({ generatorBusy }) => generatorBusy)),
        errors: Object.fromEntries(Object.entries(faults).filter(([, count]) => count > 0)),
        perSecond: [],
        sample: undefined,
        cpuMs,
        messagesPerCpuSecond: messages / (cpuMs / 1_000),
      },
    };
  }

  /** Messages that came since the last round, which awaited all of its own. */
  async unasked(): Promise<number> {
    return sumOf(await this.#reports(), ({ messages }) => messages);
  }

  async leave(): Promise<void> {
    await this.#each((group) => group.leave());
  }

  /** Until each group has so many clients, or all of its plan. Resolves with how many there are. */
  async #connect(most: number): Promise<number> {
    await this.#each((group) => group.connect(Math.min(most, group.plan.clients)));
    return this.#clients;
  }

  get #clients(): number {
    return this.#groups.reduce((total, { connected }) => total + connected, 0);
  }

  async #reports(): Promise<FanoutReport[]> {
    const reports = await this.#each((group) => group.order({ do: 'report' }));
    return reports.map((report) => {
      if (report === undefined) throw new Error('no report');
      return report;
    });
  }

  #each<Result>(act: (group: Group) => Promise<Result>): Promise<Result[]> {
    return Promise.all(this.#groups.map(act));
  }

  #rssBytes(): number | undefined {
    return costOfAll(this.server.pids)?.rssBytes;
  }

  #cpuMs(): number {
    return costOfAll(this.server.pids)?.cpuMs ?? Number.NaN;
  }
}

/** The process of some readers. */
class Group {
  readonly plan: FanoutPlan;
  readonly #name: string;
  readonly #child: ChildProcess;
  #connected = 0;

  constructor(name: string, plan: FanoutPlan) {
    this.#name = name;
    this.plan = plan;
    this.#child = fork(fileURLToPath(new URL('./fanout-process.js', import.meta.url)), [], {
      env: plainEnvironment(),
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  get connected(): number {
    return this.#connected;
  }

  async connect(clients: number): Promise<void> {
    await this.order({ do: 'connect', clients });
    this.#connected = clients;
  }

  order(order: FanoutOrder): Promise<FanoutReport | undefined> {
    return new Promise((resolve, reject) => {
      const wait = order.do === 'connect' ? 4 * BATCH_TIMEOUT_MS : BATCH_TIMEOUT_MS;
      const timer = setTimeout(() => reject(new Error(`${this.#name}: ${order.do} took too long`)), wait);
      this.#child.once('message', (answer: { report?: FanoutReport; error?: string }) => {
        clearTimeout(timer);
        if (answer.error === undefined) resolve(answer.report);
        else reject(new Error(`${this.#name}: ${answer.error}`));
      });
      this.#child.send(order, (error) => {
        if (error === null) return;
        clearTimeout(timer);
        reject(error);
      });
    });
  }

  async leave(): Promise<void> {
    await stopChild(this.#child);
  }
}

function sumOf(reports: readonly FanoutReport[], of: (report: FanoutReport) => number): number {
  return reports.reduce((total, report) => total + of(report), 0);
}
