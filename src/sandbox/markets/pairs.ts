/**
 * Trading pairs of the sandbox markets. Orders come in whole lots, so that lots times price is exact in the smallest
 * units of the quote currency; swaps go against a pool whose product of reserves never falls.
 */

import { SandboxError } from '../errors.ts';
import { currencyOf } from '../wallet/account.ts';
import type { Currency } from '../wallet/currencies.ts';

export interface Pair {
  readonly code: string;
  readonly base: Currency;
  readonly quote: Currency;
  /** Smallest units of the base currency in one lot: one whole coin. Prices are quote units per lot. */
  readonly lot: bigint;
  /** Reserves that the pool starts with, in smallest units. */
  readonly baseReserve: bigint;
  readonly quoteReserve: bigint;
}

/** Share of a swap that stays in the pool: 30 of 10,000. */
export const SWAP_FEE = 30n;
export const SWAP_FEE_BASE = 10_000n;

const GATE = currencyOf('GATE');
const DEMO = currencyOf('DEMO');

/** The pool begins with a million coins at 2.50 each. */
export const PAIRS: ReadonlyMap<string, Pair> = new Map([
  [
    'GATE-DEMO',
    {
      code: 'GATE-DEMO',
      base: GATE,
      quote: DEMO,
      lot: 10n ** BigInt(GATE.precision),
      baseReserve: 1_000_000n * 10n ** BigInt(GATE.precision),
      quoteReserve: 2_500_000n * 10n ** BigInt(DEMO.precision),
    },
  ],
]);

export function readPair(value: unknown): Pair {
  const pair = typeof value === 'string' ? PAIRS.get(value) : undefined;
  if (pair !== undefined) return pair;
  throw new SandboxError('UnknownPair', `one of ${[...PAIRS.keys()].join(', ')}`);
}

/** The pair that trades two currencies, in whichever direction. */
export function pairOf(from: Currency, to: Currency): Pair {
  for (const pair of PAIRS.values()) {
    const codes = [pair.base.code, pair.quote.code];
    if (from.code !== to.code && codes.includes(from.code) && codes.includes(to.code)) return pair;
  }
  throw new SandboxError('UnknownPair', `${from.code} is not traded for ${to.code}`);
}

/** Returns the output of the pool for an amount, rounded down: the product of the reserves never falls. */
export function poolOutput(amount: bigint, inReserve: bigint, outReserve: bigint): bigint {
  const net = amount * (SWAP_FEE_BASE - SWAP_FEE);
  return (net * outReserve) / (inReserve * SWAP_FEE_BASE + net);
}
