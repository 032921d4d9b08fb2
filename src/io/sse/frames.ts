/**
 * The wire form of server-sent events (HTML Standard 9.2, events.md "Server-sent events"): what a frame looks like, the
 * few frames that are the gateway's own, and how a `Last-Event-ID` is read. Lines end in LF. Pure.
 */
import type { StoredEvent } from '../../domain/events/events.ts';

/** A browser waits so long before it connects again, unless it is told otherwise. Milliseconds. */
export const RETRY_MS = 3_000;
/** More than one write carries: uWebSockets.js loses bytes of larger ones under back-pressure (events.md item 1). */
export const WRITE_BYTES_MAX = 15 * 1024;

/** Why a stream ends. A page connects again at once after `lifetime`, soon after `drain`, and not after the others. */
export type ByeReason = 'evicted' | 'session' | 'lifetime' | 'drain';

const CURSOR_PATTERN = /^([A-Za-z0-9]{1,64})-(0|[1-9][0-9]{0,15})$/;
const LINE_BREAK = /\r\n|\r|\n/g;

/** `<epoch>-<sequence>`. */
export function cursorText(epoch: string, sequence: number): string {
  return `${epoch}-${sequence}`;
}

/** Undefined for a text that is no cursor of any log. */
export function parseCursor(text: string): { readonly epoch: string; readonly sequence: number } | undefined {
  const [, epoch, digits] = CURSOR_PATTERN.exec(text) ?? [];
  if (epoch === undefined || digits === undefined) return undefined;
  const sequence = Number(digits);
  return Number.isSafeInteger(sequence) ? { epoch, sequence } : undefined;
}

/** One event. A line break within `data` (a module may print its JSON in several lines) starts a further data line. */
export function eventFrame(epoch: string, event: StoredEvent): Buffer {
  const { wire } = event;
  const data = wire.includes('\n') || wire.includes('\r') ? wire.replace(LINE_BREAK, '\ndata: ') : wire;
  const type = event.type.replace(LINE_BREAK, ' ');
  return Buffer.from(`id: ${epoch}-${event.sequence}\nevent: ${type}\ndata: ${data}\n\n`);
}

/** The first bytes of every stream: how long to wait before connecting again, and a comment. */
export const HELLO_FRAME = `retry: ${RETRY_MS}\n: stream of events\n`;

/**
 * The place from which the stream goes on. An id without data is kept by the client and shown to nobody, so that one
 * that is cut before its first event misses none. Never before a reset: who reads this has no need to be told.
 */
export function positionFrame(epoch: string, sequence: number): string {
  return `id: ${cursorText(epoch, sequence)}\n\n`;
}

/** A comment that shows both sides that the other is there, and the place that the client has reached. */
export function heartbeatFrame(epoch: string, sequence: number): Buffer {
  return Buffer.from(`: beat\nid: ${cursorText(epoch, sequence)}\n\n`);
}

/** A comment that changes nothing, for a stream that has to be written to. */
export const EMPTY_FRAME = Buffer.from(':\n\n');

/** What the client asked for is not there any more, or never was: from `newest` on it misses nothing again. */
export function resetFrame(epoch: string, oldest: number, newest: number): string {
  const data = { oldest: cursorText(epoch, oldest), newest: cursorText(epoch, newest) };
  return `id: ${data.newest}\nevent: reset\ndata: ${JSON.stringify(data)}\n\n`;
}

export function byeFrame(reason: ByeReason, retryMs: number): string {
  return `retry: ${Math.round(retryMs)}\nevent: bye\ndata: ${JSON.stringify({ reason })}\n\n`;
}

/** The whole answer when there is no room: any status but 200 would stop an EventSource for good. */
export function overloadBody(retryMs: number): string {
  return `retry: ${Math.round(retryMs)}\n: no room, come back later\n\n`;
}
