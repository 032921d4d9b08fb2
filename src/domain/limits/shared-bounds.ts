/** All bounds of a gateway (bounds.ts), who holds parts of them (shares.ts), and what operators see of both. */

import type { SettingsReader } from '../settings/settings.ts';
import {
  BOUND_NAMES,
  type BoundLimits,
  type BoundName,
  boundRow,
  limitsOf,
  type RefusedBy,
} from './bounds.ts';
import { Holders } from './holders.ts';
import { type BoundCounters, SharedBound } from './shares.ts';

/** A bound as operators see it. Figures of a bound that each module has are those of all modules together. */
interface BoundReport extends BoundLimits, BoundCounters {
  readonly name: BoundName;
  readonly unit: string;
  readonly summary: string;
}

/** All bounds of a gateway, and the callers that hold parts of them. */
export class SharedBounds {
  readonly holders = new Holders();
  readonly #settings: SettingsReader;
  readonly #maxima: Partial<Record<BoundName, number>>;
  readonly #observed = new Map<BoundName, () => number>();
  /**
   * Account books by bound and module. Two look-ups for each call of a module cost less than one key made of both
   * names.
   */
  readonly #books = new Map<BoundName, Map<string, SharedBound>>();
  #booksMade = 0;

  /** `maxima` replace those of the table. */
  constructor(settings: SettingsReader, maxima: Partial<Record<BoundName, number>> = {}) {
    this.#settings = settings;
    this.#maxima = maxima;
  }

  /** The one of that name; of those that each module has, the one of `module`. */
  of(name: BoundName, module = ''): SharedBound {
    const known = this.#books.get(name)?.get(module);
    if (known !== undefined) return known;
    const book = new SharedBound(boundRow(name), this.#booksMade, this.#settings, this.#maxima[name]);
    this.#booksMade += 1;
    const books = this.#books.get(name) ?? new Map<string, SharedBound>();
    this.#books.set(name, books.set(module, book));
    return book;
  }

  /** Reads the held amount of a bound whose account is kept elsewhere. */
  observe(name: BoundName, held: () => number): void {
    this.#observed.set(name, held);
  }

  report(): BoundReport[] {
    return BOUND_NAMES.map((name) => {
      const { unit, summary } = boundRow(name);
      const limits = limitsOf(boundRow(name), this.#settings, this.#maxima[name]);
      const books = [...(this.#books.get(name)?.values() ?? [])];
      const { held, refused } = sumOf(books.map((book) => book.counters()));
      return { name, unit, summary, ...limits, held: this.#observed.get(name)?.() ?? held, refused };
    });
  }
}

function sumOf(counters: readonly BoundCounters[]): BoundCounters {
  const refused = { maximum: 0, session: 0, user: 0, network: 0 };
  let held = 0;
  for (const each of counters) {
    held += each.held;
    for (const by of Object.keys(refused) as RefusedBy[]) refused[by] += each.refused[by];
  }
  return { held, refused };
}
