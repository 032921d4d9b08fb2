/** All kinds of a mixed load at once, each at its own rate in the open loop, on connections of its own. */
import { Latencies } from '../../load/latency.ts';
import { Pacer, type Sender } from '../../load/pacer.ts';
import type { LoadReport } from '../../load/plan.ts';
import type { RawConnection } from '../transfers/raw-connection.ts';
import { KeptConnection } from './kept-connection.ts';
import { type MixedFixture, type MixedKind, ratesOf } from './kinds.ts';

const SECOND_MS = 1_000;

export interface KindReport {
  readonly name: string;
  readonly duePerSecond: number;
  readonly report: LoadReport;
}

export interface MixedPlan extends LoadTimes {
  readonly fixture: MixedFixture;
  readonly ratePerSecond: number;
}

interface LoadTimes {
  readonly warmupMs: number;
  readonly durationMs: number;
  /** Called when the warm-up is over. */
  readonly onBegin?: () => void;
  /** Called when nothing more is sent. */
  readonly onEnd?: () => void;
}

/** One kind of work against one gateway. */
export interface Load {
  readonly fixture: MixedFixture;
  readonly kind: MixedKind;
  readonly ratePerSecond: number;
}

export function runMixed({ fixture, ratePerSecond, ...times }: MixedPlan): Promise<KindReport[]> {
  const loads = ratesOf(fixture, ratePerSecond).map((each) => ({ fixture, ...each }));
  return runLoads(loads, times);
}

export async function runLoads(all: readonly Load[], times: LoadTimes): Promise<KindReport[]> {
  const { warmupMs, durationMs, onBegin, onEnd } = times;
  const loads = all.map(({ fixture, kind, ratePerSecond }) => new KindLoad(fixture, kind, ratePerSecond));
  for (const load of loads) load.start();
  await elapse(warmupMs);
  for (const load of loads) load.begin();
  onBegin?.();
  // One thread serves all kinds, so each of them reports the same utilization.
  const before = performance.eventLoopUtilization();
  await elapse(durationMs);
  const busy = performance.eventLoopUtilization(before).utilization;
  onEnd?.();
  return await Promise.all(loads.map((load) => load.end(durationMs, busy)));
}

function elapse(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

/** The load of one kind: connections, pace and results. */
class KindLoad {
  readonly #kind: MixedKind;
  readonly #ratePerSecond: number;
  readonly #connections: readonly KindConnections[];
  readonly #pacer: Pacer;
  readonly #errors: Record<string, number> = {};
  #latencies = new Latencies();
  #perSecond: number[] = [];
  #startMs: number | undefined;
  #answers = 0;
  #answersInAll = 0;
  #count = 0;

  constructor(fixture: MixedFixture, kind: MixedKind, ratePerSecond: number) {
    this.#kind = kind;
    this.#ratePerSecond = ratePerSecond;
    const url = kind.listener === 'internal' ? (fixture.internal ?? fixture.url) : fixture.url;
    this.#connections = Array.from(
      { length: kind.connections },
      () =>
        new KindConnections(
          url,
          (connection) => kind.work(fixture, connection, this.#count++),
          (sinceMs, error) => this.#done(sinceMs, error),
        ),
    );
    this.#pacer = new Pacer(kind.connections, ratePerSecond);
  }

  start(): void {
    this.#pacer.start();
    for (const connections of this.#connections) connections.join(this.#pacer);
  }

  /** The warm-up is over. Its failures stay: they say that the set-up is wrong. */
  begin(): void {
    this.#startMs = performance.now();
    this.#pacer.begin();
  }

  async end(durationMs: number, generatorBusy: number): Promise<KindReport> {
    const elapsedMs = performance.now() - (this.#startMs ?? 0);
    const unsent = this.#pacer.unsent();
    this.#pacer.stop();
    if (unsent > 0) this.#errors['unsent'] = unsent;
    await Promise.all(this.#connections.map((connections) => connections.leave()));
    const report: LoadReport = {
      answers: this.#answers,
      answersInAll: this.#answersInAll,
      durationMs: elapsedMs,
      ratePerSecond: (this.#answers / elapsedMs) * SECOND_MS,
      latencyUs: this.#latencies.summary(),
      cpuMs: undefined,
      errors: this.#errors,
      sample: undefined,
      perSecond: Array.from(
        { length: Math.floor(durationMs / SECOND_MS) },
        (_, second) => this.#perSecond[second] ?? 0,
      ),
      generatorBusy,
    };
    return { name: this.#kind.name, duePerSecond: this.#ratePerSecond, report };
  }

  #done(sinceMs: number, error: string | undefined): void {
    if (error !== undefined) {
      this.#errors[error] = (this.#errors[error] ?? 0) + 1;
      return;
    }
    this.#answersInAll += 1;
    if (this.#startMs === undefined) return;
    const nowMs = performance.now();
    this.#answers += 1;
    this.#latencies.record((nowMs - sinceMs) * 1_000);
    const second = Math.floor((nowMs - this.#startMs) / SECOND_MS);
    this.#perSecond[second] = (this.#perSecond[second] ?? 0) + 1;
  }
}

/** One connection, opened anew when it is not fresh any more. */
class KindConnections implements Sender {
  readonly #connection: KeptConnection;
  readonly #work: (connection: RawConnection) => Promise<string | undefined>;
  readonly #done: (sinceMs: number, error: string | undefined) => void;
  #pacer: Pacer | undefined;
  #underWay: Promise<void> = Promise.resolve();

  constructor(
    url: string,
    work: (connection: RawConnection) => Promise<string | undefined>,
    done: (sinceMs: number, error: string | undefined) => void,
  ) {
    this.#connection = new KeptConnection(url);
    this.#work = work;
    this.#done = done;
  }

  join(pacer: Pacer): void {
    this.#pacer = pacer;
    pacer.free(this);
  }

  send(sinceMs: number): void {
    this.#underWay = this.#once(sinceMs);
  }

  /** Resolves when nothing is under way. */
  async leave(): Promise<void> {
    this.#pacer = undefined;
    await this.#underWay;
    this.#connection.close();
  }

  async #once(sinceMs: number): Promise<void> {
    let error: string | undefined;
    try {
      error = await this.#connection.use(this.#work);
    } catch (thrown) {
      // A refused or cut connection is a failure as well.
      error =
        thrown instanceof Error ? String('code' in thrown ? thrown.code : thrown.message) : String(thrown);
    }
    this.#done(sinceMs, error);
    this.#pacer?.free(this);
  }
}
