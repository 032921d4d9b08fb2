/**
 * Clients write to a cluster of three nodes while one node after the other has a fault. What was acknowledged must be
 * there once, at every node, and a node that answers must know of it at once.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { newKey, type Person, type SoftwareKey, signUp } from '../../../kit/agent.ts';
import { type NodeProcess, type Nodes, type NodesOptions, startNodes } from '../../../kit/cluster/nodes.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import { numbersOf } from '../../../kit/kills.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import { seededNumbers } from '../../../kit/seeded-numbers.ts';
import { Events, MODULE_KEY } from '../../fleet/events.ts';
import { AccountClient, type AccountTools } from './account.ts';
import { ADMINISTRATORS, Administrator } from './administrator.ts';
import { BrokenPromise, type CallCounts, GIVE_UP_MS, NodeCalls } from './calls.ts';
import { Contest } from './contest.ts';
import { FAULT, FaultHistory } from './history.ts';
import { ALL_KINDS, FAULT_KINDS, type FaultName, TAKEOVERS } from './kinds.ts';
import { compareReplicas } from './replicas.ts';
import { ServiceProbe } from './service.ts';
import { ClusterSite } from './site.ts';
import { stateOf } from './state.ts';

export interface FaultOptions {
  readonly postgres: Postgres;
  readonly rounds: number;
  /** Repeats kinds, nodes and what each client sends, but not how fast the machine is. */
  readonly seed: number;
  /** Default: all faults of nodes, in an order by chance. */
  readonly kinds?: readonly FaultName[];
  readonly clients?: number;
  /** Default: three. */
  readonly nodes?: number;
  /** Applications with a webhook, and event streams. */
  readonly receivers?: number;
  readonly streams?: number;
  /** Default: a second. */
  readonly leaseMs?: number;
  /** Longest time without service that is no fault. */
  readonly backWithinMs: number;
  readonly launch?: NodesOptions['launch'];
  readonly onRound?: (line: string) => void;
}

export interface FaultRound {
  readonly kind: FaultName;
  readonly node: string;
  readonly backMs: number;
  readonly acknowledged: number;
  readonly checked: number;
}

export interface FaultReport extends CallCounts {
  readonly seed: number;
  readonly rounds: readonly FaultRound[];
  readonly accounts: number;
  /** Keys that one account got and another one was refused. */
  readonly contested: number;
  /** Events that a module pushed, that streams and receivers got, and deliveries that were repeated. */
  readonly events: number;
  readonly delivered: number;
  readonly repeated: number;
  /** Streams that began again. */
  readonly reopened: number;
  /** Time to write the accounts of the probe without a fault. */
  readonly calmMs: number;
  /** Each line is a broken promise. Empty when all is well. */
  readonly faults: readonly string[];
  /** Faults, the requests of the account that met the first broken promise, and what the nodes said then. */
  readonly history: readonly string[];
}

const NODES = 3;
const LEASE_MS = 1_000;
const CLIENTS = 6;
const PROBES = 12;
const RECEIVERS = 10;
const STREAMS = 6;
/** People whose events they are. */
const PEOPLE = 10;
const PUSH_PAUSE_MS = 100;
/** Some receivers are slow, so that attempts are under way when a node ends. */
const SLOW_ANSWERS = 0.2;
const SLOW_ANSWER_MS = [50, 800] as const;
/** Beyond requests that were answered with 503, no fault of its surroundings makes a node log an error. */
const BUG_LINE = /^.*"level":"(?:error|fatal)".*"msg":"(?!request"|session use not written").*$/m;
/** Between two requests of a client. */
const PAUSE_MS = [5, 40] as const;
/** Numbers its chance apart from that of clients. */
const SITE_CLIENT = 1_000;
/** Milliseconds of work without a fault before each round. */
const CALM_MS = [200, 600] as const;
/** Sessions that a stopped node is asked about. */
const ASKED_MAX = 40;
const ACTIVE_KEYS = 100;

export async function runFaults(options: FaultOptions): Promise<FaultReport> {
  const keys = Array.from({ length: ADMINISTRATORS }, () => newKey());
  const nodes = await startNodes({
    postgres: options.postgres,
    nodes: options.nodes ?? NODES,
    sandbox: false,
    configuration: {
      Modules: { core: { url: 'http://127.0.0.1:9', key: MODULE_KEY } },
      Settings: { ...NO_LIMITS, ActiveKeysLimit: ACTIVE_KEYS, EventReorderMilliseconds: 0 },
      Admin: { publicKeys: keys.map(({ publicKey }) => publicKey) },
    },
    cluster: { leaseMilliseconds: options.leaseMs ?? LEASE_MS },
    ...(options.launch === undefined ? {} : { launch: options.launch }),
  });
  const run = new FaultRun(options, nodes);
  try {
    await run.all(keys);
  } finally {
    run.ended(await nodes.stop());
  }
  return run.report();
}

class FaultRun {
  readonly #options: FaultOptions;
  readonly #nodes: Nodes;
  readonly #history = new FaultHistory();
  readonly #calls: NodeCalls;
  readonly #random: () => number;
  readonly #rounds: FaultRound[] = [];
  readonly #accounts: AccountClient[] = [];
  readonly #faults: string[] = [];
  #who = FAULT;
  #isOver = false;
  readonly #contest = new Contest();
  #contested = 0;
  #calmMs = 0;
  #states: readonly string[] = [];
  readonly #site: ClusterSite;
  #events: Events | undefined;

  constructor(options: FaultOptions, nodes: Nodes) {
    this.#options = options;
    this.#nodes = nodes;
    this.#calls = new NodeCalls(nodes.nodes, this.#history);
    this.#random = seededNumbers(options.seed);
    // The site has random numbers of its own: how often a client asks must not change the faults of a seed.
    const random = numbersOf(options.seed, SITE_CLIENT);
    this.#site = new ClusterSite(() => this.#calls.pick(random));
  }

  async all(keys: readonly SoftwareKey[]): Promise<void> {
    const { clients = CLIENTS, seed } = this.#options;
    const tools = (client: number): AccountTools => ({
      calls: this.#calls,
      random: numbersOf(seed, client),
      contest: this.#contest,
    });
    await this.#guard(async () => {
      const service = await ServiceProbe.create(tools(clients), PROBES);
      const administrators = await Promise.all(
        keys.map((key, index) => Administrator.create(tools(clients + 1 + index), key, index)),
      );
      const isOver = new AbortController();
      const events = await this.#openEvents();
      const working = [
        events.push(isOver.signal),
        ...administrators.map((each, index) =>
          this.#work(tools(2 * clients + index).random, () => each.step()),
        ),
        ...Array.from({ length: clients }, (_, client) => this.#writeAccounts(tools(client))),
      ];
      await this.#inject(service);
      this.#isOver = true;
      isOver.abort();
      await Promise.all(working);
      if (this.#faults.length > 0) return;
      for (const node of this.#nodes.nodes) await service.serves(node);
      await events.compareAll();
      this.#faults.push(...this.#site.faults);
      await this.#verify(administrators);
    });
    this.#isOver = true;
    this.#events?.close();
  }

  async #openEvents(): Promise<Events> {
    const { seed, receivers = RECEIVERS, streams = STREAMS } = this.#options;
    const people: Person[] = [];
    const join = () =>
      this.#site.through('sign-up', async () => void people.push(await signUp(this.#site.url)));
    await Promise.all(Array.from({ length: PEOPLE }, join));
    const random = numbersOf(seed, SITE_CLIENT + 1);
    const answerMs = () => (random() < SLOW_ANSWERS ? between(random, SLOW_ANSWER_MS) : 0);
    const events = new Events(this.#site, people, random, { answerMs, pauseMs: PUSH_PAUSE_MS });
    this.#events = events;
    await events.openApplications(receivers);
    await events.openStreams(streams);
    return events;
  }

  report(): FaultReport {
    return {
      seed: this.#options.seed,
      rounds: this.#rounds,
      accounts: this.#accounts.length,
      contested: this.#contested,
      events: this.#events?.pushed ?? 0,
      delivered: this.#events?.delivered ?? 0,
      repeated: this.#events?.repeated ?? 0,
      reopened: this.#events?.reopened ?? 0,
      calmMs: this.#calmMs,
      ...this.#calls.counts,
      faults: this.#faults,
      history: this.#faults.length === 0 ? [] : [...this.#history.about(this.#who), ...this.#states],
    };
  }

  /** Every node ends as it should when it is stopped. */
  ended(exits: readonly { readonly code: number | null; readonly signal: string | null }[]): void {
    for (const { code, signal } of exits)
      if (code !== 0) this.#faults.push(`a node ended with ${code ?? signal}`);
  }

  async #writeAccounts(tools: AccountTools): Promise<void> {
    let client: AccountClient | undefined;
    await this.#work(tools.random, async () => {
      if (client === undefined || client.isFull) {
        client = await AccountClient.create(tools);
        this.#accounts.push(client);
      } else await client.step();
    });
  }

  /** Until the last round is over, or a promise is broken. */
  async #work(random: () => number, step: () => Promise<void>): Promise<void> {
    await this.#guard(async () => {
      while (!this.#isOver) {
        await step();
        await wait(between(random, PAUSE_MS));
      }
    });
  }

  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#isOver = true;
      const isFirst = this.#faults.length === 0;
      if (isFirst && error instanceof BrokenPromise) this.#who = error.who;
      this.#faults.push(error instanceof BrokenPromise ? error.message : String((error as Error).stack));
      if (isFirst) this.#states = (await Promise.all(this.#nodes.nodes.map(stateOf))).flat();
    }
  }

  async #inject(service: ServiceProbe): Promise<void> {
    const { rounds, onRound } = this.#options;
    this.#calmMs = await service.back(performance.now(), this.#nodes.nodes);
    let kinds: FaultName[] = [];
    while (this.#rounds.length < rounds && !this.#isOver) {
      if (kinds.length === 0) kinds = this.#shuffled();
      const kind = kinds.pop();
      if (kind === undefined) return;
      await wait(between(this.#random, CALM_MS));
      const round = await this.#round(kind, service);
      this.#rounds.push(round);
      onRound?.(`${this.#rounds.length} of ${rounds}: ${JSON.stringify(round)}`);
    }
  }

  #shuffled(): FaultName[] {
    const kinds = [...(this.#options.kinds ?? (Object.keys(FAULT_KINDS) as FaultName[]))];
    const placed = kinds.map((kind) => ({ kind, place: this.#random() }));
    return placed.sort((a, b) => a.place - b.place).map(({ kind }) => kind);
  }

  async #round(kind: FaultName, service: ServiceProbe): Promise<FaultRound> {
    const { nodes } = this.#nodes;
    const victim = this.#calls.pick(this.#random);
    const before = { ...this.#calls.counts };
    const note = (text: string) => this.#history.add(FAULT, text);
    note(`${kind} at ${victim.name} begins`);
    const backMs = await ALL_KINDS[kind]({
      postgres: this.#options.postgres,
      nodes: this.#nodes,
      victim,
      others: nodes.filter((each) => each !== victim),
      random: this.#random,
      service,
      askStopped: (sinceMs) => this.#askStopped(victim, sinceMs),
      note,
    });
    note(`${kind} at ${victim.name}: all accounts are served after ${backMs} ms`);
    for (const node of nodes) await service.serves(node).finally(() => this.#requireRunning());
    const { acknowledged, checked } = this.#calls.counts;
    const round = {
      kind,
      node: victim.name,
      backMs,
      acknowledged: acknowledged - before.acknowledged,
      checked: checked - before.checked,
    };
    if (backMs > this.#options.backWithinMs)
      throw new BrokenPromise(FAULT, `${kind} at ${victim.name}: service is back after ${backMs} ms`);
    return round;
  }

  /** Sessions that were opened or closed since the node stopped: it does not know them. */
  async #askStopped(node: NodeProcess, sinceMs: number): Promise<void> {
    const changed = this.#accounts.flatMap((account) =>
      account.sessions
        .filter((session) => session.sinceMs > sinceMs && session.state !== 'closing')
        .map((session) => ({ account, session })),
    );
    await Promise.all(
      changed.slice(-ASKED_MAX).map(({ account, session }) => account.readSession(session, node, GIVE_UP_MS)),
    );
  }

  /** They run, and have met no bug. */
  #requireRunning(): void {
    for (const { name, gateway } of this.#nodes.nodes) {
      const { exitCode, signalCode } = gateway.process;
      const { stderr } = gateway.output();
      const bug = BUG_LINE.exec(stderr)?.[0];
      if (bug !== undefined) throw new BrokenPromise(FAULT, `${name} says ${bug}`);
      if (exitCode === null && signalCode === null) continue;
      throw new BrokenPromise(FAULT, `${name} ended: ${exitCode ?? signalCode}\n${stderr}`);
    }
  }

  async #verify(administrators: readonly Administrator[]): Promise<void> {
    this.#contested = this.#contest.requireWinners();
    const shared = new Set<number | undefined>();
    for (const node of this.#nodes.nodes) {
      for (const each of administrators) await each.verify(node);
      shared.add(await administrators[0]?.readShared(node));
    }
    if (shared.size !== 1) this.#faults.push(`a setting is ${[...shared].join(' and ')}`);
    for (const account of this.#accounts) for (const node of this.#nodes.nodes) await account.verify(node);
    const keys = new Map(
      this.#accounts.flatMap(({ keys, userId }) =>
        [...keys.values()].map(({ key }): [string, string] => [key.publicKey, userId]),
      ),
    );
    const folders = this.#nodes.nodes.map(({ dataPath }) => dataPath);
    this.#faults.push(...(await compareReplicas(folders, keys)));
  }
}

function between(random: () => number, [least, most]: readonly [number, number]): number {
  return least + random() * (most - least);
}

interface KindFigures {
  readonly rounds: number;
  readonly acknowledged: number;
  readonly checked: number;
  readonly backMs: { readonly p50: number; readonly max: number };
  readonly takesOver: boolean;
}

/** Figures by kind, for the report of a long run. */
export function figuresByKind(rounds: readonly FaultRound[]): Readonly<Record<string, KindFigures>> {
  const kinds = Object.keys(ALL_KINDS) as FaultName[];
  const figures = kinds.flatMap((kind): [string, KindFigures][] => {
    const own = rounds.filter((round) => round.kind === kind);
    if (own.length === 0) return [];
    const times = own.map(({ backMs }) => backMs).sort((a, b) => a - b);
    return [
      [
        kind,
        {
          rounds: own.length,
          acknowledged: own.reduce((sum, each) => sum + each.acknowledged, 0),
          checked: own.reduce((sum, each) => sum + each.checked, 0),
          backMs: { p50: times[Math.floor(times.length / 2)] ?? 0, max: times.at(-1) ?? 0 },
          takesOver: TAKEOVERS.has(kind),
        },
      ],
    ];
  });
  return Object.fromEntries(figures);
}
