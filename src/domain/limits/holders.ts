/** The callers that hold parts of shared bounds (shares.ts): an account for each session, user and network. */
import type { ShareKind } from './bounds.ts';
import { networksOf } from './networks.ts';

/** Accounts of callers are kept up to this number; beyond it those that hold nothing are dropped. */
const ACCOUNTS_KEPT = 10_000;
/** Account books that an account has room for at once; more are rare: one for each module and bound. */
const BOOKS_USUAL = 16;

/** The amounts of every bound that one session, user or network holds. */
export interface ShareHolder {
  readonly kind: ShareKind;
  readonly name: string;
  readonly shares: number;
  /** Held amounts by the index of the bound's account book. */
  readonly held: number[];
  /** Leases; without any the account may be dropped. */
  leases: number;
}

/** One caller as bounds see it, asked for at each request; the first lease is to be taken before anything else runs. */
export interface Holder {
  readonly session: ShareHolder | undefined;
  readonly user: ShareHolder | undefined;
  readonly networks: readonly ShareHolder[];
}

/** The gateway itself, which has no share and counts at the maximum alone. */
export const NO_HOLDER: Holder = { session: undefined, user: undefined, networks: [] };

export class Holders {
  readonly #accounts = {
    session: new Map<string, ShareHolder>(),
    user: new Map<string, ShareHolder>(),
    network: new Map<string, ShareHolder>(),
  };
  /** Callers by session: a session that asks again from its address is the same caller. */
  #callers = new Map<string, { readonly address: string; readonly holder: Holder }>();
  /** Networks by address. */
  #networks = new Map<string, readonly ShareHolder[]>();
  #sweepAt = ACCOUNTS_KEPT;

  /** `address`: canonical text. */
  of(address: string, userId?: string, sessionId?: string): Holder {
    if (sessionId === undefined) return this.#make(address, userId, undefined);
    const known = this.#callers.get(sessionId);
    if (known?.address === address && known.holder.user?.name === userId) return known.holder;
    const holder = this.#make(address, userId, sessionId);
    this.#callers.set(sessionId, { address, holder });
    return holder;
  }

  /** Callers that are remembered now. */
  get size(): number {
    const { session, user, network } = this.#accounts;
    return session.size + user.size + network.size;
  }

  #make(address: string, userId: string | undefined, sessionId: string | undefined): Holder {
    if (this.size >= this.#sweepAt) this.#sweep();
    return {
      session: sessionId === undefined ? undefined : this.#account('session', sessionId, 1),
      user: userId === undefined ? undefined : this.#account('user', userId, 1),
      networks: this.#networks.get(address) ?? this.#networksOf(address),
    };
  }

  #networksOf(address: string): readonly ShareHolder[] {
    // One /64 has more addresses than memory: the accounts stay, what leads to them is found anew.
    if (this.#networks.size >= this.#sweepAt) this.#networks = new Map();
    const found = networksOf(address).map(({ name, shares }) => this.#account('network', name, shares));
    this.#networks.set(address, found);
    return found;
  }

  #account(kind: ShareKind, name: string, shares: number): ShareHolder {
    const known = this.#accounts[kind].get(name);
    if (known !== undefined) return known;
    const account: ShareHolder = {
      kind,
      name,
      shares,
      held: new Array<number>(BOOKS_USUAL).fill(0),
      leases: 0,
    };
    this.#accounts[kind].set(name, account);
    return account;
  }

  /** Costs what grew since the last one, so the next is due when there are twice as many. */
  #sweep(): void {
    // They may name accounts that go.
    this.#callers = new Map();
    this.#networks = new Map();
    for (const accounts of Object.values(this.#accounts))
      for (const [name, { leases }] of accounts) if (leases === 0) accounts.delete(name);
    this.#sweepAt = Math.max(ACCOUNTS_KEPT, 2 * this.size);
  }
}
