/**
 * Samples of the live dashboard, sent as server-sent events: the requests since the previous sample, of this node, of
 * another one, or of all. Requests are counted only while a dashboard is open; one timer serves all dashboards.
 */
import type { FinishedRequest } from '../http/exchange/finished.ts';
import { type OutgoingBody, type OutgoingSource, StreamReply } from '../http/exchange/stream.ts';
import { residentMemory } from '../observability/machine.ts';
import type { MetricReadings } from '../observability/metric-table.ts';
import type { CallObservation } from '../observability/metrics.ts';
import { type DashboardSample, FigureCounter, type Figures, sampleOf } from './figures.ts';

const SAMPLE_INTERVAL_MS = 2_000;
/** Another node that has not answered by then is named as missing in the sample. */
const ANSWER_MS = 1_500;
/** Another node that stops asking is counted for so long. */
const ASKED_MS = 5 * SAMPLE_INTERVAL_MS;
/** Dashboards that may be open at once. */
const WATCHERS_MAX = 50;
/** Samples of one stream. The page then opens a new one, which checks the role again. */
const SAMPLES_MAX = 300;

/** Stands for the names of all nodes; no node has it for its own. */
export const ALL_NODES = '*';

/** The other nodes, where there are some. */
export interface FigureNodes {
  /** Name of this node; '' without `Cluster`. */
  readonly name: string;
  /** Names of the other nodes that are in. */
  others(): readonly string[];
  /** Asks another node for its figures since this one asked before. Rejects when there is no answer. */
  figures(name: string): Promise<Figures>;
}

const ALONE: FigureNodes = {
  name: '',
  others: () => [],
  figures: () => Promise.reject(new Error('there is no other node')),
};

/** A sample as it is sent: `nodes` are those that it is of, `missing` those that did not answer. */
interface SentSample extends DashboardSample {
  readonly nodes: readonly string[];
  readonly missing: readonly string[];
}

interface Asker {
  readonly counter: FigureCounter;
  end: NodeJS.Timeout;
}

export class Dashboard {
  readonly #watchers = new Set<Watcher>();
  readonly #counters = new Set<FigureCounter>();
  /** Askers by the name of the node that asks. */
  readonly #askers = new Map<string, Asker>();
  readonly #own: FigureCounter;
  readonly #newCounter: () => FigureCounter;
  #nodes = ALONE;
  #timer: NodeJS.Timeout | undefined;

  /** `read` is called for each sample. */
  constructor(read: () => Partial<MetricReadings>) {
    const rssBytes = residentMemory(() => performance.now());
    this.#newCounter = () => new FigureCounter({ metrics: read, rssBytes });
    this.#own = this.#newCounter();
  }

  /** From now on readers may choose a node. */
  follow(nodes: FigureNodes): void {
    this.#nodes = nodes;
  }

  observe(request: FinishedRequest): void {
    for (const counter of this.#counters) counter.observe(request);
  }

  readonly observeCall = (call: CallObservation): void => {
    for (const counter of this.#counters) counter.observeCall(call);
  };

  /**
   * A stream of samples of a node, of this one unless named; undefined when too many dashboards are open. It ends when
   * `alive` returns false.
   */
  watch(alive: () => boolean, node?: string): StreamReply | undefined {
    if (this.#watchers.size >= WATCHERS_MAX) return undefined;
    const watcher = new Watcher(alive, () => this.#leave(watcher), node);
    return new StreamReply(
      200,
      watcher.source(() => this.#join(watcher)),
      {
        contentType: 'text/event-stream',
        headers: [['X-Accel-Buffering', 'no']],
        longLived: true,
      },
    );
  }

  /** Returns the figures of this node for the dashboards of another one: counts since it asked before. */
  figuresFor(asker: string, nowMs: number): Figures {
    const known = this.#askers.get(asker);
    const counter = known?.counter ?? this.#begin(this.#newCounter(), nowMs);
    if (known !== undefined) clearTimeout(known.end);
    const end = setTimeout(() => {
      this.#askers.delete(asker);
      this.#end(counter);
    }, ASKED_MS).unref();
    this.#askers.set(asker, { counter, end });
    return counter.take(nowMs);
  }

  /** Ends all streams, and the counting for other nodes. */
  close(): void {
    for (const watcher of [...this.#watchers]) watcher.end();
    for (const { counter, end } of this.#askers.values()) {
      clearTimeout(end);
      this.#end(counter);
    }
    this.#askers.clear();
  }

  /** Returns the sample of this node since the last one. */
  sample(nowMs: number): DashboardSample {
    return sampleOf(this.#own.take(nowMs));
  }

  #begin(counter: FigureCounter, nowMs: number): FigureCounter {
    counter.begin(nowMs);
    this.#counters.add(counter);
    return counter;
  }

  #end(counter: FigureCounter): void {
    counter.end();
    this.#counters.delete(counter);
  }

  #join(watcher: Watcher): void {
    this.#watchers.add(watcher);
    if (this.#timer !== undefined) return;
    this.#begin(this.#own, Date.now());
    this.#timer = setInterval(() => void this.#broadcast(), SAMPLE_INTERVAL_MS);
    this.#timer.unref();
  }

  #leave(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#end(this.#own);
  }

  /** Dashboards of this node get their sample at once, those of others when the nodes have answered. */
  async #broadcast(): Promise<void> {
    const nodes = this.#nodes;
    const answers = new Map([[nodes.name, this.#own.take(Date.now())]]);
    const all = [nodes.name, ...nodes.others()];
    const namesOf = ({ node = nodes.name }: Watcher) => (node === ALL_NODES ? all : [node]);
    const isHere = (watcher: Watcher) => namesOf(watcher).every((name) => answers.has(name));
    const frames = new Map<string, string>();
    const send = (watcher: Watcher) => {
      const names = namesOf(watcher);
      const frame = frames.get(names.join()) ?? frameOf(names, answers);
      frames.set(names.join(), frame);
      watcher.send(frame);
    };
    const watchers = [...this.#watchers];
    const later = watchers.filter((watcher) => !isHere(watcher));
    for (const watcher of watchers.filter(isHere)) send(watcher);
    const wanted = new Set(later.flatMap(namesOf).filter((name) => !answers.has(name)));
    if (wanted.size > 0) await answersOf(nodes, wanted, (name, figures) => answers.set(name, figures));
    for (const watcher of later) send(watcher);
  }
}

/** Calls back with what the nodes answer in time, and resolves when all have, or when that is over. */
async function answersOf(
  nodes: FigureNodes,
  names: ReadonlySet<string>,
  take: (name: string, figures: Figures) => void,
): Promise<void> {
  let isOver = false;
  const ask = async (name: string) => {
    const figures = await nodes.figures(name).catch(() => undefined);
    if (figures !== undefined && !isOver) take(name, figures);
  };
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ANSWER_MS);
    void Promise.all([...names].map(ask)).then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
  isOver = true;
}

/** `missing` without a sample: no node that was asked has answered. A gateway without `Cluster` has no name. */
function frameOf(names: readonly string[], answers: ReadonlyMap<string, Figures>): string {
  const found = names.filter((name) => answers.has(name));
  const missing = names.filter((name) => !answers.has(name)).sort();
  const [first, ...others] = found.flatMap((name) => answers.get(name) ?? []);
  const nodes = found.filter((name) => name !== '').sort();
  const sample: SentSample | Pick<SentSample, 'missing'> =
    first === undefined ? { missing } : { ...sampleOf(first, others), nodes, missing };
  return `event: ${first === undefined ? 'missing' : 'look'}\ndata: ${JSON.stringify(sample)}\n\n`;
}

/** One open dashboard. A sample is skipped while the previous one is being sent. */
class Watcher {
  /** The choice of the reader. */
  readonly node: string | undefined;
  readonly #isAlive: () => boolean;
  readonly #onLeave: () => void;
  #out: OutgoingBody | undefined;
  #full = false;
  #samples = 0;

  constructor(alive: () => boolean, gone: () => void, node: string | undefined) {
    this.#isAlive = alive;
    this.#onLeave = gone;
    this.node = node;
  }

  source(joined: () => void): OutgoingSource {
    return {
      start: (out) => {
        this.#out = out;
        this.#full = !out.send('retry: 3000\n: live figures\n\n');
        joined();
      },
      drained: () => {
        this.#full = false;
      },
      lost: () => {
        this.#out = undefined;
        this.#onLeave();
      },
    };
  }

  send(frame: string): void {
    this.#samples += 1;
    if (this.#samples > SAMPLES_MAX || !this.#isAlive()) this.end();
    else if (!this.#full && this.#out !== undefined) this.#full = !this.#out.send(frame);
  }

  end(): void {
    this.#out?.end();
    this.#out = undefined;
    this.#onLeave();
  }
}
