/**
 * Effects of writes that are on disk, as data: groups hold effects back, and one function performs them in order.
 * Answers are not among them: they leave after all effects of their group, in slices.
 */
import type { AnyOutcome, IndexName } from './actor.ts';
import type { Cell, Chain } from './cell.ts';
import type { MailRow } from './journal/port.ts';
import type { Entry } from './mailbox.ts';

export type Effect =
  /** The row of a message is on disk. */
  | { readonly type: 'message'; readonly row: MailRow }
  /** The row of a timer is. */
  | { readonly type: 'timer'; readonly dueMs: number }
  /** A name is free. */
  | { readonly type: 'release'; readonly index: IndexName; readonly key: string; readonly owner: string }
  /** The row of a message or timer is gone. */
  | { readonly type: 'done'; readonly entry: Entry }
  | { readonly type: 'notify'; readonly cell: Cell; readonly notify: NonNullable<AnyOutcome['notify']> }
  | {
      readonly type: 'call';
      readonly cell: Cell;
      readonly chain: Chain;
      readonly next: NonNullable<AnyOutcome['next']>;
    }
  /** The snapshot of an idle instance is on disk: it leaves memory unless it was used since. */
  | { readonly type: 'passivate'; readonly cell: Cell; readonly lastUsedMs: number };

export type EffectOf<T extends Effect['type']> = Extract<Effect, { readonly type: T }>;

export type EffectHandlers = { readonly [T in Effect['type']]: (effect: EffectOf<T>) => void };

export function performerOf(handlers: EffectHandlers): (effect: Effect) => void {
  const byType: Readonly<Record<Effect['type'], (effect: never) => void>> = handlers;
  return (effect) => byType[effect.type](effect as never);
}
