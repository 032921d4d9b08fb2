/** Stage `send`: writes the answer, and reports the request as finished when that is over. */

import { isShort } from '../exchange/early-answer.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { recordOf } from '../exchange/finished.ts';
import { errorReply } from '../exchange/reply.ts';
import { StreamReply, UpgradeReply } from '../exchange/stream.ts';
import { Reply } from '../table/route.ts';
import type { PipelineContext } from './stage.ts';

/** The handler's result as an answer: a `Reply` unchanged, anything else in the success envelope. */
export function send(exchange: Exchange, pipeline: PipelineContext): boolean {
  const { value } = exchange;
  exchange.value = undefined;
  const reply = value instanceof Reply ? value : Reply.result(value === undefined ? null : value);
  answer(exchange, pipeline, reply, false);
  handled(exchange, pipeline);
  return true;
}

/** The handler is done, also if its client has left. */
export function handled(exchange: Exchange, pipeline: PipelineContext): void {
  if (!exchange.running) return;
  exchange.running = false;
  if (exchange.settled) pipeline.inFlight.remove(exchange);
}

/**
 * The last request of a connection is answered in the next event-loop tick: uWebSockets.js reads on, and closes the
 * connection at a further head because an answer is pending (docs/decisions/0090). The first answer counts. A long answer
 * waits likewise for a body that came with its head: a body that is still arriving then ends its connection.
 */
export function answer(exchange: Exchange, pipeline: PipelineContext, reply: Reply, close: boolean): void {
  if (!exchange.last && (exchange.bodyRead || isShort(reply))) write(exchange, pipeline, reply, close);
  else if (exchange.phase === 'open') {
    exchange.decide(reply);
    setImmediate(() => write(exchange, pipeline, reply, close || exchange.last));
  } else if (reply instanceof StreamReply) reply.source.lost();
  else if (reply instanceof UpgradeReply) reply.listener.lost();
}

/** An answer with an invalid header is a bug too; nothing of it was written. */
function write(exchange: Exchange, pipeline: PipelineContext, reply: Reply, close: boolean): void {
  const { connections } = pipeline.options;
  const closing = close || pipeline.stopping || pipeline.closing || connections?.isNearCapacity() === true;
  const before = connections?.open ?? 0;
  try {
    if (reply instanceof StreamReply) {
      stream(exchange, pipeline, reply, closing);
      return;
    }
    if (reply instanceof UpgradeReply) {
      upgrade(exchange, pipeline, reply);
      return;
    }
    exchange.answer(reply, closing);
  } catch (error) {
    exchange.answer(errorReply(pipeline.bug(exchange, error)), true);
  }
  settle(exchange, pipeline);
  // Nothing but this answer ended a connection meanwhile, and no callback of its request reports it.
  const isClosed = (connections?.open ?? 0) < before && exchange.phase !== 'aborted';
  if (isClosed) connections?.noteClosed(exchange.origin.peer);
}

/** A streamed answer is over when its last byte was sent or its client left. */
function stream(exchange: Exchange, pipeline: PipelineContext, reply: StreamReply, closing: boolean): void {
  if (exchange.method === 'HEAD') {
    reply.source.lost();
    write(exchange, pipeline, reply.withoutBody(), closing);
    return;
  }
  exchange.watch();
  exchange.stream(reply, closing);
  if (!reply.longLived) return;
  exchange.head.forget();
  pipeline.inFlight.remove(exchange);
}

/** The request is over with its answer; its fields would take memory for as long as the connection lives. */
function upgrade(exchange: Exchange, pipeline: PipelineContext, reply: UpgradeReply): void {
  try {
    if (exchange.isOver) reply.listener.lost();
    else exchange.upgrade(reply);
    settle(exchange, pipeline);
    exchange.head.forget();
  } catch (error) {
    reply.listener.lost();
    throw error;
  }
}

/** Reports the request as finished, once. A handler that runs on after an abort still counts as in flight. */
export function settle(exchange: Exchange, pipeline: PipelineContext): void {
  if (exchange.settled) return;
  exchange.settled = true;
  const { clock, elapsed, tracing, observers } = pipeline.options;
  const record = recordOf(exchange, elapsed(), clock);
  if (exchange.span !== undefined) tracing?.end(exchange.span.root, record);
  if (observers !== undefined) for (const observer of observers) observer.observe(record);
  if (!exchange.running) pipeline.inFlight.remove(exchange);
}
