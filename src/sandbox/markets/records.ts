/** Log records of the sandbox markets. Amounts, prices and lots are decimal numbers of smallest units. */
import { committing } from '../record-log.ts';

/** The fields of each record. */
export interface MarketsRows {
  readonly swapped: {
    readonly utcMs: number;
    readonly userId: string;
    readonly from: string;
    readonly to: string;
    readonly paid: string;
    readonly got: string;
    /** Ids of the two transactions; the first is that of the swap. */
    readonly outId: string;
    readonly inId: string;
    readonly externalId: string | null;
  };
  readonly ordered: {
    readonly utcMs: number;
    readonly orderId: string;
    readonly userId: string;
    readonly pair: string;
    readonly side: 'buy' | 'sell';
    readonly price: string;
    readonly lots: string;
    readonly roomId: string | null;
    readonly externalId: string | null;
    /** The orders that it met at once, best first. */
    readonly fills: readonly {
      readonly orderId: string;
      readonly lots: string;
      /** Ids of the buyer's two transactions, then of the seller's: out, in, out, in. */
      readonly txIds: readonly string[];
    }[];
  };
  readonly orderCancelled: {
    readonly orderId: string;
  };
  readonly roomCreated: {
    readonly utcMs: number;
    readonly roomId: string;
    readonly userId: string;
    readonly name: string;
    readonly pair: string;
  };
  readonly roomJoined: {
    readonly roomId: string;
    readonly userId: string;
  };
  readonly roomClosed: {
    readonly roomId: string;
  };
}

export const commitMarkets = committing<MarketsRows>('markets');
