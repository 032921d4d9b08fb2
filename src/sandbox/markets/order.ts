/** Limit orders of the sandbox markets. */
import type { Pair } from './pairs.ts';

export type OrderSide = 'buy' | 'sell';

export type OrderState = 'open' | 'filled' | 'cancelled';

export interface Order {
  readonly id: string;
  readonly userId: string;
  readonly pair: Pair;
  readonly side: OrderSide;
  /** Smallest units of the quote currency per lot. */
  readonly price: bigint;
  readonly lots: bigint;
  readonly roomId: string | null;
  readonly externalId: string | null;
  readonly utcMs: number;
  filledLots: bigint;
  state: OrderState;
}
