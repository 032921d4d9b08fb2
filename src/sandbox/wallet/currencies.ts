/**
 * The demo currencies and exact decimals. An amount is a count of the smallest units in a bigint everywhere but on the
 * wire, where it is a decimal string; no floating point number ever holds money.
 */
import { SandboxError } from '../errors.ts';

export interface Currency {
  readonly code: string;
  readonly name: string;
  /** Decimal places. */
  readonly precision: number;
  /** Smallest units taken from the account with every withdrawal. */
  readonly withdrawFee: bigint;
  /** Smallest withdrawal, in smallest units. */
  readonly withdrawMin: bigint;
  /** Number of the one network of its addresses (spec 2.3 netTypes). */
  readonly netType: number;
}

/** One with the two places of everyday money, one with the eight of coins: rounding mistakes show in one of them. */
export const CURRENCIES: ReadonlyMap<string, Currency> = new Map(
  [
    { code: 'DEMO', name: 'Demo money', precision: 2, withdrawFee: 100n, withdrawMin: 100n, netType: 1 },
    {
      code: 'GATE',
      name: 'Gate coin',
      precision: 8,
      withdrawFee: 10_000n,
      withdrawMin: 100_000n,
      netType: 2,
    },
  ].map((currency) => [currency.code, currency]),
);

/** Balance of a new account in each currency, in whole units. */
const OPENING_BALANCE = 1_000n;

/** 18 digits before the point: far more than there is, and a bound on the work. */
const AMOUNT = /^(0|[1-9][0-9]{0,17})(?:\.([0-9]{1,18}))?$/;

export function readCurrency(value: unknown): Currency {
  const currency = typeof value === 'string' ? CURRENCIES.get(value) : undefined;
  if (currency !== undefined) return currency;
  throw new SandboxError('UnknownCurrency', `one of ${[...CURRENCIES.keys()].join(', ')}`);
}

/** Smallest units of a decimal string above zero. Refuses what has more places than the currency, and JSON numbers. */
export function readAmount(value: unknown, currency: Currency): bigint {
  const match = typeof value === 'string' ? AMOUNT.exec(value) : null;
  if (match === null) throw new SandboxError('BadAmount', 'a decimal string such as "12.5" is expected');
  const [, whole = '0', fraction = ''] = match;
  if (fraction.length > currency.precision)
    throw new SandboxError('BadAmount', `${currency.code} has ${currency.precision} decimal places`);
  const minor = BigInt(whole + fraction.padEnd(currency.precision, '0'));
  if (minor === 0n) throw new SandboxError('BadAmount', 'must be above zero');
  return minor;
}

/** Decimal form with all places of the currency: `1000.00`. */
export function formatAmount(minor: bigint, currency: Currency): string {
  const sign = minor < 0n ? '-' : '';
  const digits = (minor < 0n ? -minor : minor).toString().padStart(currency.precision + 1, '0');
  const point = digits.length - currency.precision;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

export function openingBalance(currency: Currency): bigint {
  return OPENING_BALANCE * 10n ** BigInt(currency.precision);
}
