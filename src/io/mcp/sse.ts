/** Server-sent events with messages of JSON-RPC. */

import { type OutgoingSource, StreamReply } from '../http/exchange/stream.ts';
import type { HeaderList } from '../http/table/route.ts';

const HEADERS: HeaderList = [
  ['Cache-Control', 'no-store, no-transform'],
  ['X-Accel-Buffering', 'no'],
];
/** In JSON text line ends are white space between tokens; in an event they would end the field. */
const LINE_ENDS = /[\r\n]/g;

/** `longLived`: not counted as a request in flight once it has started. */
export function eventStream(source: OutgoingSource, longLived?: true): StreamReply {
  const options = { contentType: 'text/event-stream', headers: HEADERS };
  return new StreamReply(200, source, longLived === undefined ? options : { ...options, longLived });
}

/** The event of a whole message. */
export function eventOf(message: string): string {
  return `event: message\ndata: ${message.replace(LINE_ENDS, ' ')}\n\n`;
}

/** The event of a message with these members. */
export function frame(members: string): string {
  return eventOf(`{"jsonrpc":"2.0",${members}}`);
}
