/**
 * Senders of one-time codes: each calls the chat module, and retries until the call succeeds or the code has expired.
 * Addresses are spread over a few senders by hash, so that a module that hangs delays neither OneTimeCodes nor all
 * codes; the codes of one address keep their order.
 */
import { createHash } from 'node:crypto';
import { contactKey } from '../../domain/contacts.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { defineActor, type Message, type Outcome, type Turn } from '../runtime/actor.ts';
import type { CodeMessage, PortResult } from '../runtime/ports.ts';
import { messageTo, type Protocol, receiver } from '../runtime/protocol.ts';
import { FORMER_CODE_DIGITS, type OpenCode } from './state.ts';

const SENDER = receiver<DeliverCode>('codeCourier');

const SENDERS = 16;
const RETRY_FIRST_MS = 2 * SECOND_MS;
const RETRY_MAX_MS = 30 * SECOND_MS;

interface DeliverCode extends Omit<CodeMessage, 'digits'>, Pick<OpenCode, 'digits'> {
  readonly type: 'deliverCode';
  /** One per contact and class: a newer code replaces an older one that still waits. */
  readonly timer: string;
  readonly holder: string | null;
  readonly expiresMs: number;
  readonly failures: number;
}

interface CodeDelivered {
  readonly type: 'codeDelivered';
  readonly command: DeliverCode;
  readonly result: PortResult<null>;
}

/** Codes that wait for another try: their end by the name of their timer. No longer than the codes live. */
interface CodeSenderState {
  readonly waiting: Readonly<Record<string, number>>;
}

type CodeSenderEvent =
  | { readonly type: 'codeDeferred'; readonly timer: string; readonly expiresMs: number }
  /** Delivered, given up, or replaced by a newer one. */
  | { readonly type: 'codeSettled'; readonly timer: string; readonly expiresMs: number };

type SenderProtocol = Protocol<
  DeliverCode | CodeDelivered,
  { readonly deliverCode: null; readonly codeDelivered: null }
>;

export const codeSender = defineActor<CodeSenderState, SenderProtocol, CodeSenderEvent>({
  kind: SENDER,
  version: 1,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: () => ({ waiting: {} }),
  evolve({ waiting }, { type, timer, expiresMs }) {
    if (type === 'codeDeferred') return { waiting: { ...waiting, [timer]: expiresMs } };
    const { [timer]: endMs, ...others } = waiting;
    return endMs === undefined || endMs > expiresMs ? { waiting } : { waiting: others };
  },
  decide: {
    deliverCode: (_state, command, turn) => deliver(command, turn),
    codeDelivered: (state, { command, result }, turn) => ended(state, command, result, turn),
  },
});

/** The message that has this code sent. */
export function senderOf(code: OpenCode): Message {
  const { channel, address, seed, digits, holder, expiresMs, known } = code;
  const hash = createHash('sha256').update(contactKey(code)).digest();
  const command: DeliverCode = {
    type: 'deliverCode',
    channel,
    address,
    seed,
    ...(digits === undefined ? {} : { digits }),
    timer: hash.toString('base64url') + (known === true ? '.known' : ''),
    holder,
    expiresMs,
    failures: 0,
  };
  return messageTo(SENDER, String(hash.readUInt8(0) % SENDERS), command);
}

function deliver(command: DeliverCode, turn: Turn): Outcome<CodeSenderEvent, null, CodeDelivered> {
  if (turn.nowMs >= command.expiresMs) return giveUp(command, turn);
  const { channel, address, seed, digits = FORMER_CODE_DIGITS } = command;
  return {
    next: async ({ codes }) => ({
      type: 'codeDelivered',
      command,
      result: (await codes?.deliver({ channel, address, seed, digits })) ?? {
        ok: false,
        error: 'DeliveryUnavailable',
      },
    }),
  };
}

function ended(
  { waiting }: CodeSenderState,
  command: DeliverCode,
  result: PortResult<null>,
  turn: Turn,
): Outcome<CodeSenderEvent, null, DeliverCode> {
  const { timer, expiresMs, failures } = command;
  const replaced = (waiting[timer] ?? 0) > expiresMs;
  if (result.ok || replaced) {
    const timers = replaced ? [] : [{ name: timer, dueMs: null }];
    return { events: [{ type: 'codeSettled', timer, expiresMs }], timers, reply: null };
  }
  const dueMs = turn.nowMs + Math.min(RETRY_FIRST_MS * 2 ** failures, RETRY_MAX_MS);
  if (dueMs >= expiresMs) return giveUp(command, turn);
  const again: DeliverCode = { ...command, failures: failures + 1 };
  return {
    events: [{ type: 'codeDeferred', timer, expiresMs }],
    timers: [{ name: timer, dueMs, command: again }],
    reply: null,
  };
}

function giveUp(
  { holder, channel, timer, expiresMs }: DeliverCode,
  turn: Turn,
): Outcome<CodeSenderEvent, null> {
  return {
    events: [{ type: 'codeSettled', timer, expiresMs }],
    audit: [{ utcMs: turn.nowMs, event: 'code_undelivered', userId: holder, fields: { channel } }],
    reply: null,
  };
}
