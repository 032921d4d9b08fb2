/**
 * `GET /auth/v1/events`: the events of a browser's user as server-sent events (spec 6.1, docs/event-streams.md). Overload
 * is answered with 200 and a retry time, because an EventSource does not reconnect after another status.
 */
import { errorRow } from '../../domain/errors.ts';
import { object, optional, text } from '../../domain/schema.ts';
import { StreamReply } from '../http/exchange/stream.ts';
import { type AnyRoute, defineRoute, type HeaderList, Reply } from '../http/table/route.ts';
import { overloadBody } from '../sse/frames.ts';
import type { StreamHub } from '../sse/hub.ts';

const STREAM_TYPE = 'text/event-stream';
/** Proxies must not cache, compress or buffer the stream (nginx). */
const STREAM_HEADERS: HeaderList = [
  ['Cache-Control', 'no-store, no-transform'],
  ['X-Accel-Buffering', 'no'],
];
/** Characters of a position: a URL may have as many. Any text that is no position of the log is answered by `reset`. */
const POSITION_MAX = 16_384;
/** No position of any log: it gets a reset. */
const NO_ID = '?';

export function createEventStreamRoute(streams: StreamHub): AnyRoute {
  const overloaded = () =>
    new Reply(200, overloadBody(streams.overloadRetryMs()), STREAM_TYPE, STREAM_HEADERS);
  return defineRoute({
    method: 'GET',
    path: '/auth/v1/events',
    summary: 'Stream of the events of the account (server-sent events)',
    spec: '6.1',
    description:
      'One stream a page; it continues after `Last-Event-ID`. Frames are `id`, `event`, `data`; `reset` says that events in between are gone. Pages of other origins are refused.',
    docs: {
      reads: { 'Last-Event-ID': 'optional' },
      answers: {
        200: {
          description: 'The stream',
          type: 'text/event-stream',
          schema: text({
            description: 'Frames of server-sent events',
            examples: ['id: a1-4\nevent: TxInWallet\ndata: {}\n\n'],
          }),
        },
      },
      sends: ['Cache-Control'],
    },
    group: 'events',
    feature: 'streams',
    auth: 'session',
    ownPagesOnly: true,
    limits: ['NoRateLimit'],
    query: object({
      last_event_id: optional(
        text({
          maxLength: POSITION_MAX,
          description:
            'Id of the last event that was seen, where the header Last-Event-ID cannot be set. The header wins.',
        }),
      ),
    }),
    refusal: ({ row }) =>
      errorRow(row).status === 503 && row !== 'NotWithCluster' ? overloaded() : undefined,
    handle({ header, repeatedHeaders, query, session, holder }) {
      const sent = repeatedHeaders.has('last-event-id') ? NO_ID : header('last-event-id');
      const position = sent === undefined || sent === '' ? query.last_event_id : sent;
      // uWS trims bytes above 0x7f, so an id of such bytes alone arrives empty. It gets a reset, never a silent gap.
      const isEmptied = sent === '' && (position === undefined || position === '');
      const origin = {
        userId: session.userId,
        sessionId: session.id,
        holder,
        lastEventId: isEmptied ? NO_ID : position === '' ? undefined : position,
      };
      const stream = streams.admit(origin);
      if (stream === undefined) return overloaded();
      const options = { contentType: STREAM_TYPE, headers: STREAM_HEADERS, longLived: true } as const;
      return new StreamReply(200, stream, options);
    },
  });
}
