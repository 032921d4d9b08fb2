/**
 * Limits that hold for all nodes of a cluster together: what this node sends of them, and what others have sent (decision
 * 0105). Without socket and timer; io/limits/limit-links.ts brings both. Nothing is stored.
 */
import type { SettingName, SettingsReader } from '../../domain/settings/settings.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../domain/time.ts';
import { SharedBandwidth } from './shared-bandwidth.ts';
import { type CountsHost, type OwnCount, SharedCounts } from './shared-counts.ts';

/** Counts in one report at most; further ones are in the next. */
export const REPORT_COUNTS_MAX = 4_096;

const REQUESTS: SettingName = 'RateLimitWindowSeconds';

/** The limits that are counted over all nodes, with the seconds of their windows. Their names travel. */
const WINDOWS = {
  /** Scope `i`: addresses, and networks of IPv6. */
  address: REQUESTS,
  /** Scopes `p` and `m` without proof: the key, and key and network. */
  publicKey: REQUESTS,
  mcpLogin: REQUESTS,
  /** Scope `s`: the session, and all of the user. */
  session: REQUESTS,
  user: REQUESTS,
  /** Scope `p` of sessions. */
  sessionKey: REQUESTS,
  /** `rateLimit` of a tool, for each caller. */
  tool: REQUESTS,
  /** Budgets of networks. */
  unknownKey: MINUTE_MS / SECOND_MS,
  signUp: DAY_MS / SECOND_MS,
} as const satisfies Record<string, SettingName | number>;

type LimitName = keyof typeof WINDOWS;
const LIMIT_NAMES = Object.keys(WINDOWS) as LimitName[];

/** Counts of one limit and window: key, count, key, count and so on. */
type CountGroup = [limit: string, windowSeconds: number, window: number, ...counts: (string | number)[]];

/** Message of a node to the others. */
export interface LimitReport {
  /** All numbers of callers with a stream are sent again. */
  readonly isWhole: boolean;
  readonly counts: readonly CountGroup[];
  /** Report of `SharedBandwidth.report`. */
  readonly bandwidth: readonly (string | number)[];
}

export class LimitExchange implements CountsHost {
  readonly counts: Readonly<Record<LimitName, SharedCounts>>;
  readonly bandwidth = new SharedBandwidth(this);
  /** Called when there is something to send. The links set it. */
  onDue: () => void = () => undefined;
  #nodes: ReadonlySet<number> = new Set();
  #due: OwnCount[] = [];
  /** True at the start: others may still know what an earlier process of this node said. */
  #isWhole = true;
  #leftOut = 0;

  constructor(settings: SettingsReader) {
    const countsOf = (name: LimitName) => {
      const window: SettingName | number = WINDOWS[name];
      const seconds = () => Number(typeof window === 'number' ? window : settings.get(window));
      return [name, new SharedCounts(name, seconds, this)] as const;
    };
    this.counts = Object.fromEntries(LIMIT_NAMES.map(countsOf)) as Record<LimitName, SharedCounts>;
  }

  get nodes(): number {
    return this.#nodes.size;
  }

  isIn(node: number): boolean {
    return this.#nodes.has(node);
  }

  /** Keys whose counts others know, and counts that were not exchanged because of a bound. */
  get counters(): { readonly keys: number; readonly leftOut: number } {
    const keys = LIMIT_NAMES.reduce((sum, name) => sum + this.counts[name].keys, 0);
    return { keys, leftOut: this.#leftOut };
  }

  /** The nodes that are in, this one included. A single node sends nothing; a node that joined gets all. */
  setNodes(nodes: ReadonlySet<number>): void {
    const before = this.#nodes;
    this.#nodes = nodes;
    this.bandwidth.keep(nodes);
    if ([...nodes].some((node) => !before.has(node))) this.repeat();
  }

  due(count?: OwnCount): void {
    if (count !== undefined) this.#due.push(count);
    this.onDue();
  }

  leftOut(): void {
    this.#leftOut += 1;
  }

  /** All is to be sent again: a node may have missed what was sent before. */
  repeat(): void {
    this.#isWhole = true;
    for (const name of LIMIT_NAMES) this.counts[name].repeat();
    this.onDue();
  }

  /** Returns the report that is due now. */
  report(): LimitReport {
    const groups = new Map<string, CountGroup>();
    let [taken, said] = [0, 0];
    for (const count of this.#due) {
      if (said === REPORT_COUNTS_MAX) break;
      taken += 1;
      count.isDue = false;
      const { counts, window, key, used } = count;
      if (!counts.isRecent(count)) continue;
      said += 1;
      const header = `${counts.name} ${window}`;
      const group = groups.get(header) ?? [counts.name, counts.seconds, window];
      groups.set(header, group);
      group.push(key, used);
    }
    this.#due = this.#due.slice(taken);
    const isWhole = this.#isWhole;
    this.#isWhole = false;
    if (this.#due.length > 0) this.onDue();
    return { isWhole, counts: [...groups.values()], bandwidth: this.bandwidth.report(isWhole) };
  }

  /** Takes the report of a process of another node. Limits that only a newer program has are passed over. */
  take(node: number, process: string, { isWhole, counts, bandwidth }: LimitReport, nowMs: number): void {
    for (const [name, seconds, window, ...said] of counts) {
      if (!Object.hasOwn(this.counts, name)) continue;
      this.counts[name as LimitName].take({ process, seconds, window, said }, nowMs);
    }
    if (isWhole) this.bandwidth.forget(node);
    this.bandwidth.take(node, bandwidth);
  }
}
