/** The ways to pay a payment order: which currency each takes and what it costs the merchant. */

import { SandboxError } from '../errors.ts';
import { type Currency, readCurrency } from '../wallet/currencies.ts';

export type PaymentMethod = 'card' | 'p2p' | 'crypto';

interface Terminal {
  readonly id: string;
  readonly method: PaymentMethod;
  readonly name: string;
  readonly currency: string;
}

const TERMINALS: readonly Terminal[] = [
  { id: '1', method: 'card', name: 'Demo card', currency: 'DEMO' },
  { id: '2', method: 'p2p', name: 'Transfer from a bank account', currency: 'DEMO' },
  { id: '3', method: 'crypto', name: 'Gate coin transfer', currency: 'GATE' },
];

/** A card costs the merchant one per cent, rounded down; the other ways cost nothing. */
export function feeOf(method: PaymentMethod, amount: bigint): bigint {
  return method === 'card' ? amount / 100n : 0n;
}

/** Terminals of a currency, of all without one. */
export function terminalsOf(code: unknown): object[] {
  const wanted = code === undefined ? undefined : readCurrency(code).code;
  return TERMINALS.filter(({ currency }) => wanted === undefined || currency === wanted).map((terminal) => ({
    ...terminal,
    feePercent: terminal.method === 'card' ? '1.00' : '0.00',
  }));
}

/** The terminal that a payer names, or the only one of that way for the currency. */
export function readTerminal(id: string | undefined, method: PaymentMethod, currency: Currency): Terminal {
  const fits = (one: Terminal) => one.method === method && one.currency === currency.code;
  const terminal = id === undefined ? TERMINALS.find(fits) : TERMINALS.find((one) => one.id === id);
  if (id !== undefined && terminal === undefined) throw new SandboxError('UnknownTerminal');
  if (terminal !== undefined && fits(terminal)) return terminal;
  throw new SandboxError('WrongTerminal', `${currency.code} is not paid by ${method} there`);
}
