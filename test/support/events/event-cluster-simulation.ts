/**
 * The deterministic simulation of the log of events of a cluster: one seed is one history of three nodes, two modules that
 * push and are polled, three readers with cursors, clients of event streams, and the faults of cluster-faults.ts.
 */
import type { IncomingEvent } from '../../../src/domain/events/intake.ts';
import {
  brokenPromiseOf,
  type ClusterFigures,
  ClusterHistory,
  type HistoryOptions,
} from '../actors/cluster-history.ts';
import type { ProcessTools, SimulatedProcess } from '../actors/simulated-cluster.ts';
import type { EventFault } from './event-faults.ts';
import { EventDisk, EventProcess, eventsOf } from './event-process.ts';
import { StreamClients } from './stream-clients.ts';

const MODULES = ['wallet', 'chat'];
const READERS = 3;
const STREAMS = 4;
const STEPS = 50;
/** Milliseconds passed in one step, at most. */
const PASS_MAX_MS = 300;
/** At the end returns, takeovers, releases and polls run their course, in rounds of so many milliseconds. */
const ROUND_MS = 1_000;
const ROUNDS_MAX = 120;
const PAGE = 1_000;

export interface EventHistoryFigures extends ClusterFigures {
  acknowledged: number;
  polled: number;
  /** Streams that were opened with a position. */
  resumed: number;
}

export interface EventClusterOptions extends HistoryOptions {
  readonly fault?: EventFault;
  /** Clients of event streams. */
  readonly streams?: number;
  readonly figures?: EventHistoryFigures;
}

type Process = SimulatedProcess<EventProcess>;

interface Reader {
  cursor: number;
  process: Process | undefined;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export function simulateEventCluster(
  seed: number,
  options: EventClusterOptions = {},
): Promise<string | undefined> {
  return brokenPromiseOf(() => new EventHistory(seed, options).run(STEPS), options);
}

class EventHistory extends ClusterHistory<EventProcess, EventDisk, EventClusterOptions> {
  readonly #tools = new WeakMap<EventProcess, ProcessTools>();
  readonly #clients: StreamClients;
  /** By identity: what was pushed without an answer so far, and what an answer has acknowledged. */
  readonly #unanswered = new Map<string, IncomingEvent>();
  readonly #acknowledged = new Set<string>();
  /** Events that each module offers to polls, in the order of its ticks. */
  readonly #offered: Record<string, number[]> = { wallet: [], chat: [] };
  readonly #readers: Reader[] = Array.from({ length: READERS }, () => ({ cursor: 0, process: undefined }));
  /** The event of each number, as the first reader or node has shown it. */
  readonly #order: string[] = [];
  #ticks = 0;

  constructor(seed: number, options: EventClusterOptions) {
    super(seed, options);
    this.#clients = new StreamClients({
      count: options.streams ?? STREAMS,
      random: this.random,
      processes: () => this.cluster.processes,
      toolsOf: (app) => this.#toolsOf(app),
      nowMs: () => this.cluster.nowMs,
      broken: (promise) => {
        this.broken ??= promise;
      },
      onEvent: (sequence, jsonText, node) => this.#see(sequence, jsonText, node),
      waitsForNothing: options.fault === 'a position that is not waited for',
    });
  }

  protected newDisk(): EventDisk {
    return new EventDisk();
  }

  protected start(tools: ProcessTools): EventProcess {
    const polled = Object.fromEntries(
      MODULES.map((module) => [module, (after: number, limit: number) => this.#page(module, after, limit)]),
    );
    const disk = this.diskOf(tools.name);
    const { fault } = this.options;
    const app = new EventProcess({ disk, tools, polled, random: this.random, fault });
    this.#tools.set(app, tools);
    return app;
  }

  protected override check(): void {
    this.#read();
    this.#clients.step();
  }

  protected override ask(): void {
    this.#push(this.#fresh());
  }

  #toolsOf(app: EventProcess): ProcessTools {
    const tools = this.#tools.get(app);
    if (tools === undefined) throw new Error('not started here');
    return tools;
  }

  protected async step(): Promise<void> {
    const dice = this.random();
    if (dice < 0.3) this.ask();
    else if (dice < 0.38) this.repeat();
    else if (dice < 0.46) this.#offer();
    else if (dice < 0.5) this.#publish();
    else if (dice < 0.55) this.#move();
    else if (dice < 0.66) await this.letThrough();
    else if (dice < 0.88) await this.pass(PASS_MAX_MS);
    else this.faults.disturb();
  }

  #fresh(): IncomingEvent[] {
    const module = this.pick(MODULES);
    const ticks = Array.from({ length: 1 + this.below(3) }, () => {
      this.#ticks += 1;
      return this.#ticks;
    });
    return eventsOf(module, ...ticks);
  }

  /** Pushes to any node that serves. Without an answer it is sent again, as modules do. */
  #push(events: readonly IncomingEvent[]): void {
    const process = this.pick(this.cluster.processes);
    const inbox = process?.app.events?.inbox;
    for (const event of events)
      if (!this.#acknowledged.has(event.identity)) this.#unanswered.set(event.identity, event);
    if (process === undefined || process.paused !== undefined || inbox === undefined) return;
    this.trace(`${process.name}: push ${events.map(({ tick }) => tick).join(' ')}`);
    inbox.accept(events).then(
      ({ accepted, duplicates }) => {
        this.trace(`${process.name}: took ${accepted}, knew ${duplicates}`);
        if (accepted + duplicates !== events.length) this.broken ??= 'the counts of an answer do not add up';
        for (const { identity } of events) {
          this.#unanswered.delete(identity);
          this.#acknowledged.add(identity);
        }
      },
      (error: Error) => this.trace(`${process.name}: refused: ${error.message}`),
    );
  }

  protected override repeat(): void {
    const event = this.pick([...this.#unanswered.values()]);
    if (event !== undefined) this.#push([event, ...this.#fresh()]);
  }

  /** The module has an event more, which a poll brings. */
  #offer(): void {
    this.#ticks += 1;
    this.#offered[this.pick(MODULES)]?.push(this.#ticks);
  }

  #page(module: string, after: number, limit: number): string {
    const ticks = (this.#offered[module] ?? []).filter((tick) => tick > after).slice(0, limit);
    const events = ticks.map(
      (tick) => `{"module":"${module}","tick":"${tick}","type":"x","data":{"id":${tick}}}`,
    );
    return `{"result":{"events":[${events.join(',')}]}}`;
  }

  #publish(): void {
    const process = this.pick(this.cluster.processes);
    if (process?.paused === undefined)
      process?.app.events?.log.publish({ type: 'own', userId: '7', data: {} }).catch(() => undefined);
  }

  /** Clients come to other nodes, with their positions. */
  #move(): void {
    this.#clients.move();
    const reader = this.pick(this.#readers);
    if (reader !== undefined) reader.process = this.pick(this.cluster.processes);
  }

  /**
   * Checks that the events of each reader follow those that it has, and are those that all others get under that
   * number.
   */
  #read(): void {
    for (const reader of this.#readers) {
      const { processes } = this.cluster;
      if (reader.process === undefined || !processes.includes(reader.process))
        reader.process = this.pick(processes);
      const log = reader.process?.paused === undefined ? reader.process?.app.events?.log : undefined;
      if (log === undefined || log.newest <= reader.cursor) continue;
      for (const { sequence, jsonText } of log.page(reader.cursor, PAGE)) {
        if (sequence !== reader.cursor + 1)
          this.broken ??= `${sequence} follows ${reader.cursor} of a reader`;
        reader.cursor = sequence;
        this.#see(sequence, jsonText, reader.process?.name);
      }
    }
  }

  #see(sequence: number, jsonText: string, name: string | undefined): void {
    this.#order[sequence] ??= jsonText;
    if (this.#order[sequence] !== jsonText) this.broken ??= `${name} has another event under ${sequence}`;
  }

  /** Every node takes a push in the end, and everything that was offered arrives. */
  protected async epilogue(): Promise<void> {
    const { cluster } = this;
    await this.#settle();
    const answers = cluster.processes.map(({ app }) => app.events?.inbox.accept(this.#fresh()));
    const taken = Promise.allSettled(answers);
    await cluster.pass(3 * ROUND_MS, true);
    for (const [index, { status }] of (await taken).entries())
      if (status === 'rejected') this.broken ??= `${cluster.processes[index]?.name} takes no pushes`;
    await this.#settle();
    if (!this.isIdle) this.broken ??= 'never comes to rest';
    this.#compare();
  }

  #settle(): Promise<void> {
    return this.settle({ roundMs: ROUND_MS, roundsMax: ROUNDS_MAX }, () => {
      if (this.#unanswered.size > 0) this.#push([...this.#unanswered.values()]);
    });
  }

  protected get isIdle(): boolean {
    const { processes } = this.cluster;
    if (!this.areAllServing || this.#unanswered.size > 0) return false;
    const newest = processes[0]?.app.events?.log.newest ?? 0;
    if (!this.#clients.isUpToDate(newest)) return false;
    const polled = processes.some(({ app }) =>
      MODULES.every((module) => {
        const cursor = app.events?.system.administration.metaGet(`eventFeed:${module}`) ?? '0';
        return cursor === String(this.#offered[module]?.at(-1) ?? 0);
      }),
    );
    return (
      polled &&
      processes.every(({ app }) => {
        const { backlog = 1 } = app.events?.system.counters() ?? {};
        return backlog + (app.events?.inbox.counters().waiting ?? 1) === 0;
      })
    );
  }

  /** Each acknowledged or polled event is in the log once, and all nodes have one log without a gap. */
  #compare(): void {
    this.#clients.verdict();
    for (const { name, app } of this.cluster.processes) {
      const { log } = app.events ?? {};
      const page = log?.page(0, PAGE) ?? [];
      if (page.length !== log?.newest)
        this.broken ??= `${name} has ${page.length} events up to ${log?.newest}`;
      for (const { sequence, jsonText } of page) this.#see(sequence, jsonText, name);
      const identities = app.cluster.journal.events.page(0, PAGE).flatMap(({ row }) => row?.[9] ?? []);
      const present = new Set(identities);
      if (present.size !== identities.length) this.broken ??= `${name} has an event twice`;
      const lost = [...this.#acknowledged].find((identity) => !present.has(identity));
      if (lost !== undefined) this.broken ??= `${lost} was acknowledged and is lost`;
      for (const module of MODULES)
        for (const { tick, identity } of eventsOf(module, ...(this.#offered[module] ?? [])))
          if (!present.has(identity)) this.broken ??= `${tick} of ${module} was polled and is lost`;
    }
  }

  protected override count(): void {
    super.count();
    const { figures } = this.options;
    if (figures === undefined) return;
    figures.acknowledged += this.#acknowledged.size;
    figures.resumed += this.#clients.resumed;
    figures.polled += MODULES.reduce((sum, module) => sum + (this.#offered[module]?.length ?? 0), 0);
  }
}
