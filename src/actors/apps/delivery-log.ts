/**
 * The delivery log of the applications (decision 0054): a ring of pages for each, every page an actor of its own, so
 * that no state grows with the number of deliveries. Line, cursor and counters of an attempt are one commit.
 */
import { type AttemptRecord, LOG_ATTEMPTS_MAX, LOG_KEEP_MS } from '../../domain/webhooks/types.ts';
import { defineActor, type Message, type Outcome, type Timer, type Turn } from '../runtime/actor.ts';
import { messageTo, type Protocol, receiver } from '../runtime/protocol.ts';

const DELIVERY_LOG = receiver<LogCommand>('deliveryLog');

export const PAGE_LINES = 100;
/** One page more than the promised lines need: the newest one is being filled. */
export const PAGES = LOG_ATTEMPTS_MAX / PAGE_LINES + 1;
const EXPIRE = 'expire';

export interface LogLine extends AttemptRecord {
  /** Counted from 1 over all attempts of the application: the cursor of the list. */
  readonly number: number;
}

interface AppendLine {
  readonly type: 'append';
  readonly line: LogLine;
}

interface ExpireLines {
  readonly type: 'expire';
}

type LogCommand = AppendLine | ExpireLines | { readonly type: 'clear' };

interface LogState {
  /** Ascending by number. */
  readonly lines: readonly LogLine[];
}

type LogEvent =
  /** The first line of a round of the ring ends those of the round before. */
  | { readonly type: 'appended'; readonly line: LogLine; readonly anew: boolean }
  | { readonly type: 'expired'; readonly beforeMs: number };

/** `LogLine[]`: lines that are still kept. */
interface LogQuery {
  readonly type: 'lines';
}

type LogProtocol = Protocol<
  LogCommand,
  { readonly append: null; readonly expire: null; readonly clear: null },
  LogQuery,
  { readonly lines: readonly LogLine[] }
>;

export const deliveryLog = defineActor<LogState, LogProtocol, LogEvent>({
  kind: DELIVERY_LOG,
  version: 1,
  limits: { mailbox: 256, snapshotEvery: PAGE_LINES, idleMs: 10_000 },
  initial: () => ({ lines: [] }),
  evolve({ lines }, event) {
    if (event.type === 'appended') return { lines: event.anew ? [event.line] : [...lines, event.line] };
    return { lines: lines.filter(({ utcMs }) => utcMs >= event.beforeMs) };
  },
  frees: ({ type }) => type !== 'append',

  decide: {
    append: (state, { line }, turn) => append(state, line, turn),
    clear: ({ lines }) =>
      lines.length === 0
        ? { reply: null }
        : {
            events: [{ type: 'expired', beforeMs: Number.MAX_SAFE_INTEGER }],
            timers: [{ name: EXPIRE, dueMs: null }],
            erases: true,
            reply: null,
          },
    expire: (state, _command, turn) => expire(state, turn),
  },

  query: {
    lines: ({ lines }, _query, _volatile, { nowMs }) =>
      lines.filter(({ utcMs }) => utcMs >= nowMs - LOG_KEEP_MS),
  },
});

function expire({ lines }: LogState, turn: Turn): Outcome<LogEvent, null, ExpireLines> {
  const beforeMs = turn.nowMs - LOG_KEEP_MS;
  const left = lines.find(({ utcMs }) => utcMs >= beforeMs);
  const timers = left === undefined ? [] : [expiryTimer(left.utcMs)];
  return { events: [{ type: 'expired', beforeMs }], timers, reply: null };
}

/** A line that is delivered twice, after a crash of the reader, changes nothing. */
function append({ lines }: LogState, line: LogLine, turn: Turn): Outcome<LogEvent, null, ExpireLines> {
  const last = lines.at(-1);
  if (last !== undefined && last.number >= line.number) return { reply: null };
  const anew = last !== undefined && roundOf(last.number) !== roundOf(line.number);
  const first = last === undefined || anew;
  const timers = first ? { timers: [expiryTimer(turn.nowMs)] } : {};
  return { events: [{ type: 'appended', line, anew }], ...timers, reply: null };
}

function expiryTimer(lineMs: number): Timer<ExpireLines> {
  return { name: EXPIRE, dueMs: lineMs + LOG_KEEP_MS + 1, command: { type: 'expire' } };
}

/** The page of a line, by its number from 1, and the round of the ring it is in. */
function pageOf(number: number): number {
  return Math.floor((number - 1) / PAGE_LINES) % PAGES;
}
function roundOf(number: number): number {
  return Math.floor((number - 1) / (PAGE_LINES * PAGES));
}

export function logPageId(appId: string, page: number): string {
  return `${appId}.${page}`;
}

export function lineMessage(appId: string, line: LogLine): Message {
  const command: AppendLine = { type: 'append', line };
  return messageTo(DELIVERY_LOG, logPageId(appId, pageOf(line.number)), command);
}

/** Messages that empty the log of a removed application. */
export function clearMessages(appId: string, lines: number): Message[] {
  const pages = Math.min(PAGES, Math.ceil(lines / PAGE_LINES));
  return Array.from({ length: pages }, (_, page) =>
    messageTo(DELIVERY_LOG, logPageId(appId, page), { type: 'clear' }),
  );
}
