/**
 * The deterministic simulation of webhooks of a cluster: one seed is one history of three nodes, the applications of two
 * accounts, receivers that are slow or lose their answers, and the faults of cluster-faults.ts.
 */
import { app } from '../../../src/actors/apps/app.ts';
import { readEvents } from '../../../src/domain/events/intake.ts';
import type { OutgoingDelivery } from '../../../src/io/webhooks/sender.ts';
import { seededNumbers } from '../actors/actors.ts';
import { ClusterFaults } from '../actors/cluster-faults.ts';
import { brokenPromiseOf } from '../actors/cluster-simulation.ts';
import { SimulatedCluster, type SimulatedProcess } from '../actors/simulated-cluster.ts';
import { EventDisk, type EventProcess } from './event-process.ts';
import { type WebhookFault, WebhookProcess } from './webhook-process.ts';
import { configureCommand, numbersOf } from './webhooks.ts';

const NODES = ['one', 'two', 'three'];
/** Account of each application. */
const APPS: Readonly<Record<string, string>> = {
  '77': '7',
  '78': '8',
  '79': '7',
  '80': '8',
  '81': '7',
  '82': '8',
};
const STEPS = 40;
/** Let through in a row, and milliseconds passed in one step, at most. */
const LET_THROUGH_MAX = 8;
const PASS_MAX_MS = 400;
/** Share of answers that are lost, until the epilogue. */
const LOST_ANSWERS = 0.1;
const ROUND_MS = 5_000;
/** A delivery that failed four times waits for five minutes and more. */
const ROUNDS_MAX = 100;
const PAGE = 1_000;

export interface WebhookHistoryFigures {
  readonly faults: Record<string, number>;
  events: number;
  arrivals: number;
  repeats: number;
  takeovers: number;
}

interface WebhookClusterOptions {
  readonly fault?: WebhookFault;
  readonly trace?: (line: string) => void;
  readonly figures?: WebhookHistoryFigures;
}

type Process = SimulatedProcess<EventProcess>;

/** Deliveries that the receiver of an application has got. */
interface Receiver {
  /** Bytes by id. */
  readonly bodies: Map<string, string>;
  /** Events of first arrivals, in their order. */
  readonly numbers: number[];
  repeats: number;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export function simulateWebhookCluster(
  seed: number,
  options: WebhookClusterOptions = {},
): Promise<string | undefined> {
  return brokenPromiseOf(() => new WebhookHistory(seed, options), options);
}

class WebhookHistory {
  readonly #options: WebhookClusterOptions;
  readonly #random: () => number;
  readonly #trace: (line: string) => void;
  readonly #cluster: SimulatedCluster<EventProcess>;
  readonly #faults: ClusterFaults<EventProcess>;
  readonly #disks = new Map<string, EventDisk>();
  readonly #webhooks = new WeakMap<EventProcess, WebhookProcess>();
  readonly #receivers = new Map<string, Receiver>();
  #events = 0;
  #lostAnswers = LOST_ANSWERS;
  #broken: string | undefined;

  constructor(seed: number, options: WebhookClusterOptions) {
    this.#options = options;
    this.#random = seededNumbers(seed);
    this.#trace = (line) => options.trace?.(`${this.#cluster.nowMs % 1_000_000} ${line}`);
    this.#cluster = new SimulatedCluster({
      random: this.#random,
      start: (tools) => {
        const disk = this.#disks.get(tools.name) ?? new EventDisk();
        this.#disks.set(tools.name, disk);
        const webhooks = new WebhookProcess({
          ...{ disk, tools, random: this.#random, fault: options.fault },
          losesAnswer: () => this.#random() < this.#lostAnswers,
          onArrival: (delivery, node) => this.#arrived(delivery, node, tools.name),
        });
        this.#webhooks.set(webhooks.process, webhooks);
        return webhooks.process;
      },
      check: () => undefined,
      onFatal: (name, error) => this.#ended(name, error),
    });
    this.#faults = new ClusterFaults({
      cluster: this.#cluster,
      random: this.#random,
      trace: this.#trace,
      ask: () => this.#push(),
      repeat: () => undefined,
      restart: (name, isKept) => this.#restart(name, isKept),
      trim: () => undefined,
    });
  }

  async run(): Promise<string | undefined> {
    for (const name of NODES) {
      this.#cluster.startProcess(name);
      await this.#cluster.pass(100, true);
    }
    await this.#cluster.pass(500, true);
    for (const appId of Object.keys(APPS)) await this.#register(appId);
    for (let step = 0; step < STEPS && this.#broken === undefined; step += 1) await this.#step();
    if (this.#broken === undefined) await this.#epilogue();
    this.#count();
    return this.#broken;
  }

  async #register(appId: string): Promise<void> {
    this.#receivers.set(appId, { bodies: new Map(), numbers: [], repeats: 0 });
    const patch = { ownerId: APPS[appId] ?? '', maxBatch: 1 + this.#below(4) };
    // A node may come in late, or be without its lease for a moment.
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const owner = this.#cluster.processes.find(({ app: each }) => each.cluster.view.owns(app.kind, appId));
      const told = owner?.app.events?.system.tell(app, appId, configureCommand(appId, patch)).then(
        () => true,
        () => false,
      );
      await this.#cluster.pass(5_000, true);
      if ((await told) === true) return;
    }
    throw new Error('no node takes the application');
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[this.#below(items.length)];
  }

  async #step(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.45) this.#push();
    else if (dice < 0.6) {
      for (let count = this.#below(LET_THROUGH_MAX); count >= 0; count -= 1) await this.#cluster.step();
    } else if (dice < 0.85) await this.#cluster.pass(this.#below(PASS_MAX_MS), this.#random() < 0.7);
    else this.#faults.disturb();
  }

  /** At any node that serves; what is refused, and what was not heard of, may be in the log or not. */
  #push(): void {
    const process = this.#pick(this.#cluster.processes);
    if (process?.paused !== undefined) return;
    this.#events += 1;
    const n = this.#events;
    const crmId = this.#pick(['7', '8']) ?? '';
    const event = { module: 'wallet', tick: String(n), type: 'x', crmId, data: { id: n, n } };
    const events = [...readEvents(JSON.stringify({ events: [event] }), 1, String)];
    process?.app.events?.inbox
      .accept(events)
      .catch((error: Error) => this.#trace(`${process.name}: ${n} is refused: ${error.message}`));
  }

  #arrived({ url, webhookId, body }: OutgoingDelivery, node: number, name: string): void {
    const appId = /[0-9]+/.exec(url)?.[0] ?? '';
    const receiver = this.#receivers.get(appId);
    if (receiver === undefined) throw new Error(`no receiver at ${url}`);
    this.#trace(`${name}: ${appId} gets ${numbersOf(body)} by ${webhookId.slice(-6)}`);
    if (!this.#isMember(node)) this.#broken ??= `${name} delivers to ${appId} although it is out`;
    const known = receiver.bodies.get(webhookId);
    if (known !== undefined) {
      receiver.repeats += 1;
      if (known !== body) this.#broken ??= `${appId} got other bytes with one id`;
      return;
    }
    receiver.bodies.set(webhookId, body);
    receiver.numbers.push(...numbersOf(body));
  }

  /** True if the node is a member by the process that has applied most. */
  #isMember(node: number): boolean {
    const replicas = this.#cluster.processes.map(({ app: each }) => each.cluster.replica);
    const [first] = replicas.toSorted((one, other) => other.position - one.position);
    return first?.members.member(node) !== undefined;
  }

  #restart(name: string, isKept: boolean): void {
    this.#trace(`${name}: starts`);
    if (isKept) this.#disks.get(name)?.journal.crash(this.#random() < 0.5 ? 'lost' : 'written');
    else this.#disks.delete(name);
    this.#cluster.startProcess(name);
  }

  #ended(name: string, error: Error): void {
    this.#trace(`${name} ended: ${error.message}`);
    if (error.name === 'NameTaken' || error.name === 'NodeStopped') this.#restart(name, true);
    else this.#broken ??= `${name} ended: ${error.stack}`;
  }

  async #epilogue(): Promise<void> {
    this.#trace('epilogue');
    this.#lostAnswers = 0;
    for (let round = 0; round < ROUNDS_MAX && this.#broken === undefined && !this.#isIdle; round += 1) {
      for (const process of this.#cluster.processes) process.skewMs = 0;
      this.#cluster.databaseSkewMs = 0;
      await this.#cluster.pass(ROUND_MS, true);
    }
    if (this.#broken === undefined && !this.#isIdle) this.#broken = 'never comes to rest';
    this.#verdict();
  }

  get #isIdle(): boolean {
    const { processes, log, planned } = this.#cluster;
    if (processes.length < NODES.length || planned > 0) return false;
    return processes.every((process) => this.#rests(process, log.position));
  }

  #rests({ app: each, paused }: Process, position: number): boolean {
    const { backlog = 1 } = each.events?.system.counters() ?? {};
    const counters = this.#webhooks.get(each)?.dispatcher?.counters();
    const isServing = paused === undefined && each.node.admits && each.cluster.replica.position === position;
    const rest = counters === undefined || counters.pending + counters.inFlight + counters.waiting > 0;
    return isServing && backlog === 0 && !rest;
  }

  /** Each application has every event of its account, once but for repeats, in the order of the log. */
  #verdict(): void {
    const log = this.#cluster.processes[0]?.app.events?.log;
    const events = log?.page(0, PAGE) ?? [];
    for (const [appId, { numbers }] of this.#receivers) {
      const wanted = events
        .filter(({ userId }) => userId === APPS[appId])
        .flatMap(({ jsonText }) => numbersOf(jsonText));
      if (String(numbers) !== String(wanted)) this.#broken ??= `${appId} got ${numbers} of ${wanted}`;
    }
  }

  #count(): void {
    const { figures } = this.#options;
    if (figures === undefined) return;
    for (const [name, count] of Object.entries(this.#faults.counts))
      figures.faults[name] = (figures.faults[name] ?? 0) + count;
    figures.events += this.#events;
    for (const { bodies, repeats } of this.#receivers.values()) {
      figures.arrivals += bodies.size + repeats;
      figures.repeats += repeats;
    }
    for (const { app: each } of this.#cluster.processes) figures.takeovers += each.node.counts.expelled;
  }
}
