/** Log records of the sandbox markets. Amounts, prices and lots are decimal numbers of smallest units. */
import type { SandboxRecord } from '../record-log.ts';

export interface Swapped extends SandboxRecord {
  readonly type: 'swapped';
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
}

export interface Ordered extends SandboxRecord {
  readonly type: 'ordered';
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
}

export interface OrderCancelled extends SandboxRecord {
  readonly type: 'orderCancelled';
  readonly orderId: string;
}

export interface RoomCreated extends SandboxRecord {
  readonly type: 'roomCreated';
  readonly utcMs: number;
  readonly roomId: string;
  readonly userId: string;
  readonly name: string;
  readonly pair: string;
}

export interface RoomJoined extends SandboxRecord {
  readonly type: 'roomJoined';
  readonly roomId: string;
  readonly userId: string;
}

export interface RoomClosed extends SandboxRecord {
  readonly type: 'roomClosed';
  readonly roomId: string;
}

export type MarketsRecord = Swapped | Ordered | OrderCancelled | RoomCreated | RoomJoined | RoomClosed;
