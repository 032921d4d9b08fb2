/**
 * Accounts of a bound by holder (bounds.ts): `take` grants a lease, or names the exhausted share. In memory, without a
 * clock. A caller is looked up once a request; after that a lease is additions to its accounts.
 */

import { GatewayError } from '../errors.ts';
import type { SettingsReader } from '../settings/settings.ts';
import { type Bound, type BoundLimits, limitsOf, networkLimit, type RefusedBy } from './bounds.ts';
import type { Holder, ShareHolder } from './holders.ts';

/** A caller over its share, or a full bound, may ask again after so many seconds. */
const RETRY_SECONDS = 1;

export interface ShareRefusal {
  readonly refusedBy: RefusedBy;
}

export interface BoundCounters {
  readonly held: number;
  readonly refused: Readonly<Record<RefusedBy, number>>;
}

/** A held part of a bound. Released once; it can grow. */
export class Lease {
  readonly #book: SharedBound;
  #holder: Holder;
  #amount: number;
  #over = false;

  constructor(book: SharedBound, holder: Holder, amount: number) {
    this.#book = book;
    this.#holder = holder;
    this.#amount = amount;
  }

  get amount(): number {
    return this.#amount;
  }

  /** So much more; undefined when it is granted. */
  add(amount: number): ShareRefusal | undefined {
    const refusal = this.#book.grow(this.#holder, amount);
    if (refusal === undefined) this.#amount += amount;
    return refusal;
  }

  /** The same caller, known better now: another session or user. Undefined when it is granted; else nothing changes. */
  identify(holder: Holder): ShareRefusal | undefined {
    const refusal = this.#book.move(this.#holder, holder, this.#amount);
    if (refusal === undefined) this.#holder = holder;
    return refusal;
  }

  /** Gives a part of it back, and keeps the rest. */
  reduce(amount: number): void {
    if (this.#over) return;
    this.#amount -= amount;
    this.#book.shrink(this.#holder, amount);
  }

  release(): void {
    if (this.#over) return;
    this.#over = true;
    this.#book.giveBack(this.#holder, this.#amount);
  }
}

export class SharedBound {
  readonly #row: Bound;
  readonly #index: number;
  readonly #settings: SettingsReader;
  readonly #maximum: number | undefined;
  /** The limits at this revision of the settings. */
  #limits: BoundLimits;
  #revision: number;
  #held = 0;
  readonly #refused: Record<RefusedBy, number> = { maximum: 0, session: 0, user: 0, network: 0 };

  constructor(row: Bound, index: number, settings: SettingsReader, maximum: number | undefined) {
    this.#row = row;
    this.#index = index;
    this.#settings = settings;
    this.#maximum = maximum;
    this.#limits = limitsOf(row, settings, maximum);
    this.#revision = settings.revision;
  }

  /** The lease, or whose share does not suffice: nothing was taken then. */
  take(holder: Holder, amount = 1): Lease | ShareRefusal {
    const refusal = this.grow(holder, amount);
    return refusal ?? this.#lease(holder, amount);
  }

  /** Takes like `take`, for callers that wait: a refusal is not counted. */
  takeIfFree(holder: Holder): Lease | undefined {
    if (this.#refusedBy(holder, 1) !== undefined) return undefined;
    this.#add(holder, 1);
    return this.#lease(holder, 1);
  }

  #lease(holder: Holder, amount: number): Lease {
    count(holder, 1);
    return new Lease(this, holder, amount);
  }

  /** Takes a lease like `take`. Throws the row of the error table that the bound names. */
  require(holder: Holder, amount = 1): Lease {
    const lease = this.take(holder, amount);
    if (lease instanceof Lease) return lease;
    throw this.error(lease);
  }

  error({ refusedBy }: ShareRefusal): GatewayError {
    const { error, shareError = 'AccessRateLimit', unit } = this.#row;
    if (refusedBy === 'maximum') return new GatewayError(error, undefined, RETRY_SECONDS);
    return new GatewayError(
      shareError,
      `too many ${unit} of one ${refusedBy} at the same time`,
      RETRY_SECONDS,
      refusedBy === 'network' ? 'i' : 's',
    );
  }

  limits(): BoundLimits {
    const { revision } = this.#settings;
    if (revision !== this.#revision) {
      this.#limits = limitsOf(this.#row, this.#settings, this.#maximum);
      this.#revision = revision;
    }
    return this.#limits;
  }

  counters(): BoundCounters {
    return { held: this.#held, refused: { ...this.#refused } };
  }

  /** A refusal of a bound whose account is kept elsewhere (upload slots: in the journal). */
  countRefusal(refusedBy: RefusedBy): void {
    this.#refused[refusedBy] += 1;
  }

  /** Called by leases alone. */
  grow(holder: Holder, amount: number): ShareRefusal | undefined {
    const refusedBy = this.#refusedBy(holder, amount);
    if (refusedBy !== undefined) return this.#refuse(refusedBy);
    this.#add(holder, amount);
    return undefined;
  }

  #refuse(refusedBy: RefusedBy): ShareRefusal {
    this.#refused[refusedBy] += 1;
    return { refusedBy };
  }

  /** Called by leases alone. What networks hold of it is judged no second time. */
  move(from: Holder, to: Holder, amount: number): ShareRefusal | undefined {
    const { session, user } = this.limits();
    if (from.session !== to.session && this.#isOver(to.session, amount, session))
      return this.#refuse('session');
    if (from.user !== to.user && this.#isOver(to.user, amount, user)) return this.#refuse('user');
    this.giveBack(from, amount);
    this.#add(to, amount);
    count(to, 1);
    return undefined;
  }

  /** Called by leases alone. */
  shrink(holder: Holder, amount: number): void {
    this.#add(holder, -amount);
  }

  /** Called by leases alone. */
  giveBack(holder: Holder, amount: number): void {
    this.#add(holder, -amount);
    count(holder, -1);
  }

  /** The caller's own shares first: one that is over them learns nothing of the others. */
  #refusedBy(holder: Holder, amount: number): RefusedBy | undefined {
    const limits = this.limits();
    if (this.#isOver(holder.session, amount, limits.session)) return 'session';
    if (this.#isOver(holder.user, amount, limits.user)) return 'user';
    for (const network of holder.networks)
      if (this.heldBy(network) + amount > networkLimit(limits, network.shares)) return 'network';
    return this.#held + amount > limits.maximum ? 'maximum' : undefined;
  }

  #isOver(account: ShareHolder | undefined, amount: number, share: number | undefined): boolean {
    return account !== undefined && share !== undefined && this.heldBy(account) + amount > share;
  }

  /** Returns the amount of this bound that the caller holds. */
  heldBy(account: ShareHolder | undefined): number {
    return account?.held[this.#index] ?? 0;
  }

  #add({ session, user, networks }: Holder, amount: number): void {
    this.#held += amount;
    this.#addTo(session, amount);
    this.#addTo(user, amount);
    for (const network of networks) this.#addTo(network, amount);
  }

  #addTo(account: ShareHolder | undefined, amount: number): void {
    if (account !== undefined) account.held[this.#index] = this.heldBy(account) + amount;
  }
}

function count({ session, user, networks }: Holder, leases: 1 | -1): void {
  if (session !== undefined) session.leases += leases;
  if (user !== undefined) user.leases += leases;
  for (const network of networks) network.leases += leases;
}
