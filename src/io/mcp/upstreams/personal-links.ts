/**
 * Sessions of people at one server with `auth: "user"`: opened by the first call of a person, ended when idle. A token that the
 * server refuses is renewed once for all calls that have it.
 */
import { GatewayError } from '../../../domain/errors.ts';
import { MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import type { CallToken } from '../credentials/credentials.ts';
import { type PersonalDeps, PersonalLink, Unauthorized } from './personal-link.ts';
import type { Offer, OfferKind, PersonalServer, PersonalSessions } from './types.ts';

/** People with a session at one server, of this node. */
const LINKS_MAX = 1_000;
const IDLE_MS = 10 * MINUTE_MS;
/** A list waits so long for the items of one server. */
const LIST_MS = 5 * SECOND_MS;
const SWEEP_MS = MINUTE_MS;
/** A call waits so long for its person to log in: many clients and proxies give up after 60 s. */
const LOGIN_MS = 45 * SECOND_MS;
const CHECK_INTERVAL_MS = SECOND_MS / 2;
/** Calls of one server that wait for a login, and those of one person. */
const WAITING_MAX = 500;
const WAITING_OF_ONE_MAX = 4;

export class PersonalLinks implements PersonalSessions {
  readonly #deps: PersonalDeps;
  /** Links in the order of their last use. */
  readonly #links = new Map<string, PersonalLink>();
  /** Ends a wait; by whom. */
  readonly #waiting = new Map<() => void, string>();
  #stopSweep: (() => void) | undefined;
  #isClosed = false;
  /** Calls that found no room: for another session, or to wait for a login. */
  refused = 0;

  constructor(deps: PersonalDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#links.size;
  }

  async enter(userId: string): Promise<PersonalServer> {
    const token = await this.#token(userId);
    const link = this.#linkOf(userId, token);
    link.users += 1;
    try {
      await link.open().catch((error: unknown) => this.#reopen(userId, link, error));
      return link;
    } catch (error) {
      link.leave();
      throw error;
    }
  }

  async renew(userId: string, { keyId }: Pick<CallToken, 'keyId'>): Promise<void> {
    const link = this.#links.get(userId);
    const token = await this.#renewed(userId, keyId);
    if (link !== undefined && link.token.connectedMs === token.connectedMs) link.token = token;
  }

  connectedMs(userId: string): number | undefined {
    const { server, address, tokens } = this.#deps;
    return tokens.connectedMs(userId, server.name, address);
  }

  /** The login may be that of any node: what this one has applied of the account is looked at. */
  connected(
    userId: string,
    formerMs: number | undefined,
    onAbort: (listener: () => void) => void,
  ): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    const ofOne = [...this.#waiting.values()].filter((each) => each === userId).length;
    if (this.#waiting.size >= WAITING_MAX || ofOne >= WAITING_OF_ONE_MAX) {
      this.refused += 1;
      return Promise.resolve(false);
    }
    const { timer, monotonicMs } = this.#deps;
    const endsMs = monotonicMs() + LOGIN_MS;
    return new Promise((resolve) => {
      let stop: (() => void) | undefined;
      const end = (isConnected: boolean) => {
        stop?.();
        this.#waiting.delete(giveUp);
        resolve(isConnected);
      };
      const giveUp = () => end(false);
      const check = () => {
        const foundMs = this.#connectedNow(userId);
        if (foundMs !== undefined && foundMs !== formerMs) end(true);
        else if (monotonicMs() >= endsMs) giveUp();
        else stop = timer(CHECK_INTERVAL_MS, check);
      };
      this.#waiting.set(giveUp, userId);
      check();
      onAbort(giveUp);
    });
  }

  /** Undefined also while the account cannot be asked (no lease, quarantined): the next check finds what has come meanwhile. */
  #connectedNow(userId: string): number | undefined {
    try {
      return this.connectedMs(userId);
    } catch (error) {
      if (error instanceof GatewayError) return undefined;
      throw error;
    }
  }

  /** Lists the offers to the person; none without credentials, or when the server takes too long. */
  offers(userId: string, kind: OfferKind): Promise<readonly Offer[]> {
    let stop: (() => void) | undefined;
    const late = new Promise<readonly Offer[]>((resolve) => {
      stop = this.#deps.timer(LIST_MS, () => resolve([]));
    });
    return Promise.race([this.#offers(userId, kind), late]).finally(() => stop?.());
  }

  async #offers(userId: string, kind: OfferKind): Promise<readonly Offer[]> {
    try {
      const link = await this.enter(userId);
      try {
        return await link.offers(kind);
      } catch (error) {
        if (!(error instanceof Unauthorized)) throw error;
        await this.renew(userId, link.token);
        return await link.offers(kind);
      } finally {
        link.leave();
      }
    } catch (error) {
      // The other items of the list are there all the same, and a call says what is missing.
      if (error instanceof GatewayError || error instanceof Unauthorized) return [];
      throw error;
    }
  }

  relist(): void {
    for (const link of this.#links.values()) link.relist();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopSweep?.();
    for (const giveUp of [...this.#waiting.keys()]) giveUp();
    const links = [...this.#links.values()];
    this.#links.clear();
    await Promise.all(links.map((link) => link.close()));
  }

  async #reopen(userId: string, link: PersonalLink, error: unknown): Promise<void> {
    if (!(error instanceof Unauthorized)) throw error;
    try {
      await link.openWith(await this.#renewed(userId, link.token.keyId));
    } catch (again) {
      throw again instanceof Unauthorized ? new GatewayError('UpstreamLoginRequired') : again;
    }
  }

  #token(userId: string): CallToken | Promise<CallToken> {
    const { server, address, tokens } = this.#deps;
    return tokens.find(userId, server.name, address);
  }

  #renewed(userId: string, overKeyId: string): Promise<CallToken> {
    const { server, address, tokens } = this.#deps;
    return tokens.renew(userId, server.name, address, overKeyId);
  }

  /** Another login is another person there: its session is never used with the token of the former one. */
  #linkOf(userId: string, token: CallToken): PersonalLink {
    const found = this.#links.get(userId);
    this.#links.delete(userId);
    if (found !== undefined && found.token.connectedMs === token.connectedMs) {
      found.token = token;
      this.#links.set(userId, found);
      return found;
    }
    void found?.close();
    if (this.#links.size >= LINKS_MAX) this.#makeRoom();
    const link = new PersonalLink(userId, token, this.#deps);
    this.#links.set(userId, link);
    this.#stopSweep ??= this.#deps.timer(SWEEP_MS, () => this.#sweep());
    return link;
  }

  #makeRoom(): void {
    for (const [userId, link] of this.#links) {
      if (link.users > 0) continue;
      this.#links.delete(userId);
      void link.close();
      return;
    }
    this.refused += 1;
    throw new GatewayError('Overloaded');
  }

  #sweep(): void {
    const idleMs = this.#deps.monotonicMs() - IDLE_MS;
    for (const [userId, link] of this.#links) {
      if (link.users > 0 || link.usedMs > idleMs) continue;
      this.#links.delete(userId);
      void link.close();
    }
    this.#stopSweep = this.#links.size === 0 ? undefined : this.#deps.timer(SWEEP_MS, () => this.#sweep());
  }
}
