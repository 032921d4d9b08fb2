/**
 * Wire format of server-sent events (HTML Standard 9.2, docs/event-streams.md): event frames, the gateway's own frames,
 * and `Last-Event-ID`. Lines end in LF. Pure functions.
 */
import type { StoredEvent } from '../../domain/events/events.ts';

/** Default delay before a browser reconnects. Milliseconds. */
export const RETRY_MS = 3_000;
/** Upper bound of one write: uWebSockets.js loses bytes of writes above 16 KB under back-pressure. */
export const WRITE_BYTES_MAX = 15 * 1024;

/**
 * The reason why a stream ends. A client reconnects at once after `lifetime`, soon after `drain`, and not after the
 * others.
 */
export type ByeReason = 'evicted' | 'session' | 'lifetime' | 'drain';

const CURSOR_PATTERN = /^([A-Za-z0-9]{1,64})-(0|[1-9][0-9]{0,15})$/;
const LINE_BREAK = /\r\n|\r|\n/g;

/** `<epoch>-<sequence>`. */
function cursorText(epoch: string, sequence: number): string {
  return `${epoch}-${sequence}`;
}

/** Undefined for an invalid cursor. */
export function parseCursor(text: string): { readonly epoch: string; readonly sequence: number } | undefined {
  const [, epoch, digits] = CURSOR_PATTERN.exec(text) ?? [];
  if (epoch === undefined || digits === undefined) return undefined;
  const sequence = Number(digits);
  return Number.isSafeInteger(sequence) ? { epoch, sequence } : undefined;
}

/** One event. A line break within `data` (JSON may be formatted on several lines) starts another data line. */
export function eventFrame(epoch: string, event: StoredEvent): Buffer {
  const { jsonText } = event;
  const data =
    jsonText.includes('\n') || jsonText.includes('\r') ? jsonText.replace(LINE_BREAK, '\ndata: ') : jsonText;
  const type = event.type.replace(LINE_BREAK, ' ');
  return Buffer.from(`id: ${epoch}-${event.sequence}\nevent: ${type}\ndata: ${data}\n\n`);
}

/** The first bytes of every stream: reconnect delay and a comment. */
export const HELLO_FRAME = `retry: ${RETRY_MS}\n: stream of events\n`;

/**
 * The start position of a stream. A client keeps an id without data but dispatches no event, so a stream that is cut
 * before its first event misses none. Before a `reset` event only the position that the client has sent is repeated.
 */
export function positionFrame(epoch: string, sequence: number): string {
  return `id: ${cursorText(epoch, sequence)}\n\n`;
}

/** A comment that keeps the connection alive, and the position that the client has reached. */
export function heartbeatFrame(epoch: string, sequence: number): Buffer {
  return Buffer.from(`: beat\nid: ${cursorText(epoch, sequence)}\n\n`);
}

/** An empty comment, for a stream that must be written to. */
export const EMPTY_FRAME = Buffer.from(':\n\n');

/** The requested position is unknown or too old: events from `newest` on are complete again. */
export function resetFrame(epoch: string, oldest: number, newest: number): string {
  const data = { oldest: cursorText(epoch, oldest), newest: cursorText(epoch, newest) };
  return `id: ${data.newest}\nevent: reset\ndata: ${JSON.stringify(data)}\n\n`;
}

export function byeFrame(reason: ByeReason, retryMs: number): string {
  return `retry: ${Math.round(retryMs)}\nevent: bye\ndata: ${JSON.stringify({ reason })}\n\n`;
}

/** The whole answer on overload: any status but 200 would stop an EventSource permanently. */
export function overloadBody(retryMs: number): string {
  return `retry: ${Math.round(retryMs)}\n: no room, come back later\n\n`;
}
