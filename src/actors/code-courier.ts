/**
 * Couriers of one-time codes: a message from the code desk becomes a call to the chat module, tried again until it
 * succeeds or the code has expired. There are few of them, for addresses by their hash, so that a module that hangs
 * holds up neither the desk nor all messages; those of one address keep their order.
 */
import { createHash } from 'node:crypto';
import { contactKey } from '../domain/contacts.ts';
import { SECOND_MS } from '../domain/time.ts';
import type { OpenCode } from './code-state.ts';
import { defineActor, type Message, type Outcome, type Turn } from './runtime/actor.ts';
import type { CodeMessage, PortResult } from './runtime/ports.ts';

const COURIERS = 16;
const RETRY_FIRST_MS = 2 * SECOND_MS;
const RETRY_MAX_MS = 30 * SECOND_MS;

interface DeliverCode extends CodeMessage {
  readonly type: 'deliverCode';
  /** One per contact: a newer code takes the place of an older one that still waits. */
  readonly timer: string;
  readonly holder: string | null;
  readonly expiresMs: number;
  readonly failures: number;
}

export type CourierCommand =
  | DeliverCode
  | {
      readonly type: 'codeDelivered';
      readonly command: DeliverCode;
      readonly result: PortResult<null>;
    };

/** Messages by their end. Events keep the journal of a courier short: they count for its snapshots. */
export interface CourierState {
  readonly delivered: number;
  readonly deferred: number;
  readonly givenUp: number;
}

type CourierEvent = { readonly type: keyof CourierState };

export const codeCourier = defineActor<CourierState, CourierCommand, CourierEvent, never>({
  kind: 'codeCourier',
  version: 1,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: () => ({ delivered: 0, deferred: 0, givenUp: 0 }),
  evolve: (state, { type }) => ({ ...state, [type]: state[type] + 1 }),
  decide(_state, command, turn) {
    return command.type === 'deliverCode'
      ? deliver(command, turn)
      : ended(command.command, command.result, turn);
  },
});

/** The message that has this code sent. */
export function courierOf(code: OpenCode): Message {
  const { channel, address, seed, holder, expiresMs } = code;
  const hash = createHash('sha256').update(contactKey(code)).digest();
  const command: DeliverCode = {
    type: 'deliverCode',
    channel,
    address,
    seed,
    timer: hash.toString('base64url'),
    holder,
    expiresMs,
    failures: 0,
  };
  return { toKind: 'codeCourier', toId: String(hash.readUInt8(0) % COURIERS), command };
}

function deliver(command: DeliverCode, turn: Turn): Outcome<CourierEvent> {
  if (turn.nowMs >= command.expiresMs) return giveUp(command, turn);
  const { channel, address, seed } = command;
  return {
    next: async ({ codes }) => ({
      type: 'codeDelivered',
      command,
      result: (await codes?.deliver({ channel, address, seed })) ?? {
        ok: false,
        error: 'DeliveryUnavailable',
      },
    }),
  };
}

function ended(command: DeliverCode, result: PortResult<null>, turn: Turn): Outcome<CourierEvent> {
  const name = command.timer;
  if (result.ok) {
    return { events: [{ type: 'delivered' }], timers: [{ name, dueMs: null, command: {} }], reply: null };
  }
  const dueMs = turn.nowMs + Math.min(RETRY_FIRST_MS * 2 ** command.failures, RETRY_MAX_MS);
  if (dueMs >= command.expiresMs) return giveUp(command, turn);
  const again: DeliverCode = { ...command, failures: command.failures + 1 };
  return { events: [{ type: 'deferred' }], timers: [{ name, dueMs, command: again }], reply: null };
}

function giveUp({ holder, channel }: DeliverCode, turn: Turn): Outcome<CourierEvent> {
  const fields = { channel };
  return {
    events: [{ type: 'givenUp' }],
    audit: [{ utcMs: turn.nowMs, event: 'code_undelivered', userId: holder, fields }],
    reply: null,
  };
}
