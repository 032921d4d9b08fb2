/**
 * Runs handlers at the end of the event-loop tick in which their requests became complete, then writes their results.
 * Reason: docs/optimizations.md.
 */
import { TickBatch } from '../batch.ts';
import type { Exchange } from './exchange.ts';
import type { AnyRoute } from './route.ts';

interface SchedulerListener {
  /** The handler's result. */
  answer(exchange: Exchange, value: unknown): void;
  /** The handler threw: an expected failure or a bug. */
  fail(exchange: Exchange, error: unknown): void;
  /** The handler is done, also if its client has left. Called once, last. */
  done(exchange: Exchange): void;
}

export class RequestScheduler {
  readonly #listener: SchedulerListener;
  readonly #handlers = new TickBatch<Exchange>('work', (exchange) => this.run(exchange));
  readonly #answers = new TickBatch<Exchange>('send', (exchange) => this.#answer(exchange));

  constructor(listener: SchedulerListener) {
    this.#listener = listener;
  }

  /** Schedules a complete request. */
  add(exchange: Exchange): void {
    this.#start(exchange);
    this.#handlers.add(exchange);
  }

  /** Runs the handler at once, for a body that it reads as it arrives. */
  run(exchange: Exchange): void {
    this.#start(exchange);
    const { route } = exchange;
    // The client may have left.
    if (exchange.isOver || route === undefined) {
      this.#done(exchange);
      return;
    }
    exchange.noteWork();
    if (exchange.span !== undefined) exchange.span = exchange.span.child(`route ${route.path}`);
    try {
      const result = route.handle(exchange as Parameters<AnyRoute['handle']>[0]);
      if (!(result instanceof Promise)) this.#onResult(exchange, result);
      else
        result.then(
          // One reaction to the promise: each further one costs a microtask.
          (value) => this.#onResult(exchange, value),
          (error: unknown) => this.#fail(exchange, error),
        );
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  /** From here on the answer needs its own cork, and an abort is reported. */
  #start(exchange: Exchange): void {
    if (exchange.running) return;
    exchange.watch();
    exchange.running = true;
  }

  #onResult(exchange: Exchange, value: unknown): void {
    exchange.value = value;
    endRoute(exchange);
    this.#answers.add(exchange);
  }

  #answer(exchange: Exchange): void {
    const { value } = exchange;
    exchange.value = undefined;
    try {
      this.#listener.answer(exchange, value);
    } catch (error) {
      this.#listener.fail(exchange, error);
    } finally {
      this.#done(exchange);
    }
  }

  #fail(exchange: Exchange, error: unknown): void {
    endRoute(exchange);
    try {
      this.#listener.fail(exchange, error);
    } finally {
      this.#done(exchange);
    }
  }

  #done(exchange: Exchange): void {
    exchange.running = false;
    this.#listener.done(exchange);
  }
}

/** The span of a sampled request's handler. */
function endRoute({ span }: Exchange): void {
  if (span !== undefined && span !== span.root) span.end();
}
