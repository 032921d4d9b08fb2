/**
 * Nodes of a cluster as far as limits go, in virtual time: every limit that is shared, and links that take a while. A node
 * may have another clock, be paused, die and come back. What nodes say passes through frames of links.
 */
import {
  authenticateSession,
  initialVolatile,
  type UserVolatile,
} from '../../../src/actors/accounts/user-session-check.ts';
import { initialUser } from '../../../src/actors/accounts/user-state.ts';
import type { SessionRecord, UserState } from '../../../src/actors/accounts/user-types.ts';
import { LimitExchange } from '../../../src/actors/limits/limit-exchange.ts';
import { Limiter } from '../../../src/actors/limits/limiter.ts';
import { windowIndex } from '../../../src/domain/limits/quotas.ts';
import { LiveSettings, type SettingName, type SettingValue } from '../../../src/domain/settings/settings.ts';
import { DAY_MS } from '../../../src/domain/time.ts';
import { packFrame, unpackFrame } from '../../../src/io/cluster/frames.ts';
import { Throttle } from '../../../src/io/files/throttle.ts';
import { LimitLinks } from '../../../src/io/limits/limit-links.ts';
import { ToolLimits } from '../../../src/io/mcp/tool-limits.ts';
import { VirtualTime } from '../files/throttle.ts';

/** Start of a minute and of a window. */
export const START_MS = 1_760_000_040_000;
/** Quota of every limit, in its window. */
export const QUOTA = 1_500;
export const WINDOW_SECONDS = 5;
const RPS = QUOTA / WINDOW_SECONDS;
const LENGTH_BYTES = 4;

const SETTINGS: Partial<Record<SettingName, SettingValue>> = {
  RateLimitWindowSeconds: WINDOW_SECONDS,
  IpRPSLimit: RPS,
  PubKeyApiRPSLimit: RPS,
  McpApiRPSLimit: RPS,
  SessionApiRPSLimit: RPS,
  UserApiRPSLimit: RPS,
  UnknownKeyFailuresPerMinute: QUOTA,
  SignUpsPerNetworkPerDay: QUOTA,
};

const NO_KEYS: ReadonlySet<string> = new Set();

/** An account with two sessions, as one node sees it. */
interface Account {
  readonly state: UserState;
  readonly volatile: UserVolatile;
}

function accountOf(userId: string): Account {
  const sessions = [`${userId}1`, `${userId}2`].map(
    (id): SessionRecord => ({
      ...{ id, kind: 'browser', loginType: null, keyId: null, appId: null, hash: id },
      ...{ createdMs: START_MS, lastSeenMs: START_MS, expiresMs: START_MS + DAY_MS, ip: '', userAgent: '' },
    }),
  );
  return { state: { ...initialUser(userId), sessions }, volatile: initialVolatile() };
}

export class LimitNode {
  readonly number: number;
  readonly exchange: LimitExchange;
  readonly links: LimitLinks;
  readonly throttle: Throttle;
  readonly now: () => number;
  pausedUntilMs = 0;
  readonly #settings: LiveSettings;
  readonly #limiter: Limiter;
  readonly #tools: ToolLimits;
  readonly #accounts = { session: accountOf('1'), user: accountOf('2'), sessionKey: accountOf('3') };
  #turn = 0;

  constructor(nodes: LimitNodes, number: number, process: number, offsetMs: number) {
    const { time } = nodes;
    this.number = number;
    this.now = () => START_MS + time.nowMs + offsetMs;
    this.#settings = new LiveSettings({ ...SETTINGS, ...nodes.settings });
    this.exchange = new LimitExchange(this.#settings);
    const { counts, bandwidth } = this.exchange;
    this.#limiter = new Limiter({
      settings: this.#settings,
      clock: this.now,
      connectionsOpen: () => 1,
      exchange: this.exchange,
    });
    this.#tools = new ToolLimits(this.now, counts.tool);
    const timer = (delayMs: number, run: () => void) => time.timer(delayMs, () => nodes.run(this, run));
    this.throttle = new Throttle({
      settings: this.#settings,
      elapsed: time.clock,
      timer,
      shared: bandwidth,
    });
    this.links = new LimitLinks({
      exchange: this.exchange,
      schedule: { timer, immediate: (run) => run() },
      clock: this.now,
      node: () => number,
      process: `process ${process}`,
      callAll: (verb, ...args) => nodes.send(this, verb, args),
    });
  }

  /** May one more request pass this limit? Each has one key. */
  readonly charges: Readonly<Record<string, () => boolean>> = {
    address: () => this.#limiter.chargeAddress('10.0.0.1', 1, this.now())?.allowed === true,
    network: () => this.#limiter.chargeAddress('2001:db8::1', 1, this.now())?.allowed === true,
    publicKey: () => this.#limiter.chargeKey('p', 'K', '10.0.0.2', 1, this.now())?.allowed === true,
    mcpLogin: () => this.#limiter.chargeKey('m', 'K', '10.0.0.2', 1, this.now())?.allowed === true,
    session: () => this.#enter('session', 's', 1),
    user: () => this.#enter('user', 's', 1 + (this.#turn++ % 2)),
    sessionKey: () => this.#enter('sessionKey', 'p', 1 + (this.#turn++ % 2)),
    tool: () => this.#tools.hit('tool', 'caller', RPS, WINDOW_SECONDS).allowed,
    unknownKey: () => this.#limiter.budgets.unknownKeys.charge('10.0.0.3', this.now())?.allowed === true,
    signUp: () => this.#limiter.budgets.signUps.charge('10.0.0.4', this.now())?.allowed === true,
  };

  /** A request of a caller that comes here alone. */
  chargeOwn(): boolean {
    return this.#limiter.chargeAddress(`10.1.0.${this.number}`, 1, this.now())?.allowed === true;
  }

  #enter(name: 'session' | 'user' | 'sessionKey', scope: 's' | 'p', which: number): boolean {
    const { state, volatile } = this.#accounts[name];
    const sessionId = `${state.userId}${which}`;
    const command = {
      ...({ type: 'enterSession', kind: 'browser', sessionId, hash: sessionId } as const),
      adminPublicKeys: NO_KEYS,
      charge: { scope, cost: 1 },
      shared: this.exchange.counts,
    };
    const turn = {
      ...{ nowMs: this.now(), commandId: 'c', hasPeers: true, settings: this.#settings },
      newId: () => '1',
      randomBytes: (length: number) => new Uint8Array(length),
    };
    return authenticateSession(state, volatile, command, turn)?.quotaResult?.allowed === true;
  }
}

/** Number of the window of a limit that a node is in. */
export function windowOf(limit: string, node: LimitNode): number {
  const seconds = limit === 'signUp' ? DAY_MS / 1_000 : limit === 'unknownKey' ? 60 : WINDOW_SECONDS;
  return windowIndex(node.now(), seconds);
}

export class LimitNodes {
  readonly time: VirtualTime;
  readonly settings: Partial<Record<SettingName, SettingValue>>;
  readonly #hopMs: () => number;
  readonly #nodes = new Map<number, LimitNode>();
  /** Numbers of nodes that run and were expelled. */
  readonly #expelled = new Set<number>();
  readonly #arrivals = new Map<string, number>();
  #areLinksCut = false;
  #processes = 0;

  /** `hopMs`: how long the next frame is under way. */
  constructor(hopMs: () => number = () => 1, settings: Partial<Record<SettingName, SettingValue>> = {}) {
    this.time = new VirtualTime();
    this.#hopMs = hopMs;
    this.settings = settings;
  }

  get all(): readonly LimitNode[] {
    return [...this.#nodes.values()];
  }

  /** A node joins: its links are there. */
  start(number: number, offsetMs = 0): LimitNode {
    this.#processes += 1;
    const node = new LimitNode(this, number, this.#processes, offsetMs);
    this.#nodes.set(number, node);
    this.#membersChanged();
    return node;
  }

  /** A node dies, and the others have expelled it. */
  end(number: number): void {
    this.#nodes.get(number)?.links.stop();
    this.#nodes.delete(number);
    this.#membersChanged();
  }

  /** A node is expelled, or comes back by itself; its links stay. */
  setOut(number: number, isOut: boolean): void {
    if (isOut) this.#expelled.add(number);
    else this.#expelled.delete(number);
    this.#membersChanged();
  }

  /** Runs what is due in this time; what is due later stays due. */
  runFor(durationMs: number): void {
    const endMs = this.time.nowMs + durationMs;
    this.time.timer(durationMs, () => undefined);
    this.time.runUntil(endMs);
  }

  pause(node: LimitNode, durationMs: number): void {
    node.pausedUntilMs = this.time.nowMs + durationMs;
  }

  isPaused(node: LimitNode): boolean {
    return this.time.nowMs < node.pausedUntilMs;
  }

  /** Reports are lost while links are cut; all nodes repeat them once they are back. */
  cutLinks(areCut: boolean): void {
    this.#areLinksCut = areCut;
    if (!areCut) for (const each of this.all) each.exchange.repeat();
  }

  /** Work of a node: of a paused one when it wakes, of a dead one never. */
  run(node: LimitNode, work: () => void): void {
    if (this.#nodes.get(node.number) !== node) return;
    if (this.isPaused(node))
      this.time.timer(node.pausedUntilMs - this.time.nowMs, () => this.run(node, work));
    else work();
  }

  /** Frames of one link arrive in order. */
  async send(
    from: LimitNode,
    verb: string,
    args: readonly unknown[],
  ): Promise<PromiseSettledResult<unknown>[]> {
    const frame = packFrame(args).subarray(LENGTH_BYTES);
    for (const to of this.all) {
      if (to === from || this.#areLinksCut) continue;
      const link = `${from.number} ${to.number}`;
      const atMs = Math.max(this.#arrivals.get(link) ?? 0, this.time.nowMs + this.#hopMs());
      this.#arrivals.set(link, atMs);
      this.time.timer(atMs - this.time.nowMs, () =>
        this.run(to, () => to.links.verbs[verb]?.(...(unpackFrame(frame) as unknown[]))),
      );
    }
    return [];
  }

  #membersChanged(): void {
    const numbers = new Set([...this.#nodes.keys()].filter((number) => !this.#expelled.has(number)));
    for (const node of this.all) node.exchange.setNodes(numbers);
  }
}
