/**
 * Hosts that connect, exchange and refresh while the program is killed: no grant is lost whose token was answered, no code is
 * good twice, and a refresh token has one successor.
 */
import { signUp } from '../../kit/agent.ts';
import { type KillOptions, type KillReport, killLoop, numbersOf, untilCut } from '../../kit/kills.ts';
import type { RunningGateway } from '../../kit/launch.ts';
import { HIGH_LIMITS } from '../../kit/launch.ts';
import {
  authorizeQuery,
  consent,
  exchange,
  type HostClient,
  type HostTokens,
  refreshTokens,
  registerHost,
  sendMcp,
  tokensOf,
} from './hosts.ts';

export interface HostKillReport extends KillReport {
  /** Answers with tokens. */
  issued: number;
  /** Kills that met a host between a consent and its token, and between a refresh and its answer. */
  codesMet: number;
  refreshesMet: number;
}

const DELAY_MS = [20, 400] as const;
const REFRESHES = 4;
/** Connects of one account, which keeps at most 64 used challenges: a consent and its code are two. */
const CONNECTS_MAX = 24;
/** Answers with tokens that the delay before a kill waits for: a busy machine may take long for the first. */
const ISSUED_BEFORE_DELAY = 2;

class KilledHost {
  readonly #report: HostKillReport;
  readonly #client: HostClient;
  readonly #random: () => number;
  readonly #onIssued: () => void;
  #cookie = '';
  /** That the present account can still open. */
  #connectsLeft = 0;
  /** A code that was answered; `isSent`: its exchange may have been decided. */
  #code: { readonly text: string; isSent: boolean } | undefined;
  #tokens: HostTokens | undefined;
  #isRefreshing = false;
  /** Codes whose tokens were answered. */
  #spent: string | undefined;

  constructor(report: HostKillReport, client: HostClient, random: () => number, onIssued: () => void) {
    this.#report = report;
    this.#onIssued = onIssued;
    this.#client = client;
    this.#random = random;
  }

  /** Works until the connection ends. */
  async work({ url }: RunningGateway): Promise<void> {
    for (;;) {
      if (this.#tokens === undefined) await this.#connect(url);
      const refreshes = Math.ceil(this.#random() * REFRESHES);
      for (let turn = 0; turn < refreshes; turn += 1) await this.#refresh(url);
      this.#tokens = undefined;
    }
  }

  async check({ url }: RunningGateway): Promise<void> {
    if (this.#code !== undefined) await this.#checkCode(url, this.#code);
    else if (this.#tokens !== undefined) await this.#checkTokens(url, this.#tokens);
    if (this.#spent !== undefined) {
      const again = await exchange(url, this.#client, this.#spent);
      if (again.status === 200) this.#report.faults.push('a code was good twice');
    }
    this.#code = undefined;
    this.#tokens = undefined;
    this.#spent = undefined;
    this.#isRefreshing = false;
  }

  async #connect(url: string): Promise<void> {
    if (this.#connectsLeft === 0) {
      this.#cookie = (await signUp(url)).cookie;
      this.#connectsLeft = CONNECTS_MAX;
    }
    this.#connectsLeft -= 1;
    const text = await consent(url, this.#cookie, authorizeQuery(this.#client));
    this.#code = { text, isSent: false };
    // A kill meets some hosts between the consent and the exchange.
    if (this.#random() < 0.5) await sendMcp(url, 'none', { method: 'ping' });
    this.#code.isSent = true;
    this.#tokens = tokensOf(await exchange(url, this.#client, text));
    this.#code = undefined;
    this.#spent = text;
    this.#onIssued();
  }

  async #refresh(url: string): Promise<void> {
    const { refresh } = this.#tokens ?? { refresh: '' };
    this.#isRefreshing = true;
    this.#tokens = tokensOf(await refreshTokens(url, this.#client, refresh));
    this.#isRefreshing = false;
    this.#onIssued();
  }

  /** A code whose exchange was sent may be spent: then the person is asked again. */
  async #checkCode(url: string, { text, isSent }: { text: string; isSent: boolean }): Promise<void> {
    this.#report.codesMet += 1;
    const { status } = await exchange(url, this.#client, text);
    if (!isSent && status !== 200) this.#report.faults.push(`a code is lost: ${status}`);
    const again = await exchange(url, this.#client, text);
    if (again.status === 200) this.#report.faults.push('a code was good twice');
  }

  async #checkTokens(url: string, { access, refresh }: HostTokens): Promise<void> {
    const { faults } = this.#report;
    if (this.#isRefreshing) this.#report.refreshesMet += 1;
    else {
      const { status } = await sendMcp(url, access, { method: 'ping' });
      if (status !== 200) faults.push(`an answered access token is lost: ${status}`);
    }
    const first = await refreshTokens(url, this.#client, refresh);
    if (first.status !== 200) faults.push(`an answered refresh token is lost: ${first.status}`);
    if (first.status !== 200) return;
    // It was the current token or the former one; now it is the former one.
    const again = await refreshTokens(url, this.#client, refresh);
    if (again.status !== 200)
      return void faults.push(`a former token is lost in its minute: ${again.status}`);
    const [one, other] = [tokensOf(first), tokensOf(again)];
    if (one.refresh !== other.refresh) faults.push('a refresh token has two successors');
    for (const token of [one.access, other.access]) {
      const { status } = await sendMcp(url, token, { method: 'ping' });
      if (status !== 200) faults.push(`a token of two that refresh at once is lost: ${status}`);
    }
  }
}

export async function runHostKillLoop(options: Omit<KillOptions, 'plant'>): Promise<HostKillReport> {
  const { clients, seed } = options;
  const report: HostKillReport = { seed, kills: 0, faults: [], issued: 0, codesMet: 0, refreshesMet: 0 };
  await killLoop(options, { configuration: { Settings: HIGH_LIMITS } }, report, async (first) => {
    const hosts: KilledHost[] = [];
    let onRipe: (() => void) | undefined;
    let ripeAt = 0;
    const onIssued = () => {
      report.issued += 1;
      if (report.issued >= ripeAt) onRipe?.();
    };
    for (let index = 0; index < clients; index += 1) {
      const client = await registerHost(first.url);
      hosts.push(new KilledHost(report, client, numbersOf(seed, index), onIssued));
    }
    return {
      async work(gateway) {
        ripeAt = report.issued + ISSUED_BEFORE_DELAY;
        const ripe = new Promise<void>((resolve) => {
          onRipe = resolve;
        });
        const cut = Promise.all(hosts.map((host) => untilCut(report, () => host.work(gateway))));
        return { ripe, cut, delayMs: DELAY_MS };
      },
      async check(gateway) {
        for (const host of hosts) await host.check(gateway);
      },
    };
  });
  return report;
}
