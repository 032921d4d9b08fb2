/**
 * The deterministic simulation of webhooks of a cluster: one seed is one history of three nodes, the applications of two
 * accounts, receivers that are slow or lose their answers, and the faults of cluster-faults.ts.
 */
import { app } from '../../../src/actors/apps/app.ts';
import { readEvents } from '../../../src/domain/events/intake.ts';
import type { OutgoingDelivery } from '../../../src/io/webhooks/sender.ts';
import {
  brokenPromiseOf,
  type ClusterFigures,
  ClusterHistory,
  type HistoryOptions,
} from '../actors/cluster-history.ts';
import type { ProcessTools, SimulatedProcess } from '../actors/simulated-cluster.ts';
import { EventDisk, type EventProcess } from './event-process.ts';
import { type WebhookFault, WebhookProcess } from './webhook-process.ts';
import { configureCommand, numbersOf } from './webhooks.ts';

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
/** Milliseconds passed in one step, at most. */
const PASS_MAX_MS = 400;
/** Share of answers that are lost, until the epilogue. */
const LOST_ANSWERS = 0.1;
const ROUND_MS = 5_000;
/** A delivery that failed four times waits for five minutes and more. */
const ROUNDS_MAX = 100;
const PAGE = 1_000;

export interface WebhookHistoryFigures extends ClusterFigures {
  events: number;
  arrivals: number;
  repeats: number;
}

interface WebhookClusterOptions extends HistoryOptions {
  readonly fault?: WebhookFault;
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
  return brokenPromiseOf(() => new WebhookHistory(seed, options).run(STEPS), options);
}

class WebhookHistory extends ClusterHistory<EventProcess, EventDisk, WebhookClusterOptions> {
  readonly #webhooks = new WeakMap<EventProcess, WebhookProcess>();
  readonly #receivers = new Map<string, Receiver>();
  #events = 0;
  #lostAnswers = LOST_ANSWERS;

  protected newDisk(): EventDisk {
    return new EventDisk();
  }

  protected start(tools: ProcessTools): EventProcess {
    const disk = this.diskOf(tools.name);
    const webhooks = new WebhookProcess({
      ...{ disk, tools, random: this.random, fault: this.options.fault },
      losesAnswer: () => this.random() < this.#lostAnswers,
      onArrival: (delivery, node) => this.#arrived(delivery, node, tools.name),
    });
    this.#webhooks.set(webhooks.process, webhooks);
    return webhooks.process;
  }

  protected override async begin(): Promise<void> {
    for (const appId of Object.keys(APPS)) await this.#register(appId);
  }

  async #register(appId: string): Promise<void> {
    this.#receivers.set(appId, { bodies: new Map(), numbers: [], repeats: 0 });
    const patch = { ownerId: APPS[appId] ?? '', maxBatch: 1 + this.below(4) };
    // A node may come in late, or be without its lease for a moment.
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const owner = this.cluster.processes.find(({ app: each }) => each.cluster.view.owns(app.kind, appId));
      const told = owner?.app.events?.system.tell(app, appId, configureCommand(appId, patch)).then(
        () => true,
        () => false,
      );
      await this.cluster.pass(5_000, true);
      if ((await told) === true) return;
    }
    throw new Error('no node takes the application');
  }

  protected async step(): Promise<void> {
    const dice = this.random();
    if (dice < 0.45) this.ask();
    else if (dice < 0.6) await this.letThrough();
    else if (dice < 0.85) await this.pass(PASS_MAX_MS);
    else this.faults.disturb();
  }

  /** At any node that serves; what is refused, and what was not heard of, may be in the log or not. */
  protected override ask(): void {
    const process = this.pick(this.cluster.processes);
    if (process?.paused !== undefined) return;
    this.#events += 1;
    const n = this.#events;
    const crmId = this.pick(['7', '8']);
    const event = { module: 'wallet', tick: String(n), type: 'x', crmId, data: { id: n, n } };
    const events = [...readEvents(JSON.stringify({ events: [event] }), 1, String)];
    process?.app.events?.inbox
      .accept(events)
      .catch((error: Error) => this.trace(`${process.name}: ${n} is refused: ${error.message}`));
  }

  #arrived({ url, webhookId, body }: OutgoingDelivery, node: number, name: string): void {
    const appId = /[0-9]+/.exec(url)?.[0] ?? '';
    const receiver = this.#receivers.get(appId);
    if (receiver === undefined) throw new Error(`no receiver at ${url}`);
    this.trace(`${name}: ${appId} gets ${numbersOf(body)} by ${webhookId.slice(-6)}`);
    if (!this.#isMember(node)) this.broken ??= `${name} delivers to ${appId} although it is out`;
    const known = receiver.bodies.get(webhookId);
    if (known !== undefined) {
      receiver.repeats += 1;
      if (known !== body) this.broken ??= `${appId} got other bytes with one id`;
      return;
    }
    receiver.bodies.set(webhookId, body);
    receiver.numbers.push(...numbersOf(body));
  }

  /** True if the node is a member by the process that has applied most. */
  #isMember(node: number): boolean {
    const replicas = this.cluster.processes.map(({ app: each }) => each.cluster.replica);
    const [first] = replicas.toSorted((one, other) => other.position - one.position);
    return first?.members.member(node) !== undefined;
  }

  protected async epilogue(): Promise<void> {
    this.#lostAnswers = 0;
    await this.settle({ roundMs: ROUND_MS, roundsMax: ROUNDS_MAX });
    if (!this.isIdle) this.broken ??= 'never comes to rest';
    this.#compare();
  }

  protected get isIdle(): boolean {
    return this.areAllServing && this.cluster.processes.every((process) => this.#rests(process));
  }

  #rests({ app: each }: Process): boolean {
    const { backlog = 1 } = each.events?.system.counters() ?? {};
    const counters = this.#webhooks.get(each)?.dispatcher?.counters();
    if (backlog > 0 || counters === undefined) return false;
    return counters.pending + counters.inFlight + counters.waiting === 0;
  }

  /** Each application has every event of its account, once but for repeats, in the order of the log. */
  #compare(): void {
    const log = this.cluster.processes[0]?.app.events?.log;
    const events = log?.page(0, PAGE) ?? [];
    for (const [appId, { numbers }] of this.#receivers) {
      const wanted = events
        .filter(({ userId }) => userId === APPS[appId])
        .flatMap(({ jsonText }) => numbersOf(jsonText));
      if (String(numbers) !== String(wanted)) this.broken ??= `${appId} got ${numbers} of ${wanted}`;
    }
  }

  protected override count(): void {
    super.count();
    const { figures } = this.options;
    if (figures === undefined) return;
    figures.events += this.#events;
    for (const { bodies, repeats } of this.#receivers.values()) {
      figures.arrivals += bodies.size + repeats;
      figures.repeats += repeats;
    }
  }
}
