/**
 * Runs the handlers at the end of the turn in which their requests became whole, and behind them writes what they came
 * to. Why not one request after the other: docs/optimizations.md.
 */
import { TickBatch } from '../batch.ts';
import type { Exchange } from './exchange.ts';
import type { AnyRoute } from './route.ts';

interface SchedulerListener {
  /** What the handler came to. */
  answer(exchange: Exchange, value: unknown): void;
  /** A refusal, or a bug. */
  fail(exchange: Exchange, error: unknown): void;
  /** Its handler's work is over, whether anybody was there for the answer or not. Once, last. */
  done(exchange: Exchange): void;
}

export class RequestScheduler {
  readonly #listener: SchedulerListener;
  readonly #handlers = new TickBatch<Exchange>('work', (exchange) => this.run(exchange));
  readonly #answers = new TickBatch<Exchange>('send', (exchange) => this.#answer(exchange));

  constructor(listener: SchedulerListener) {
    this.#listener = listener;
  }

  /** The request is whole. */
  add(exchange: Exchange): void {
    this.#start(exchange);
    this.#handlers.add(exchange);
  }

  /** At once: the handler reads the body as it arrives. */
  run(exchange: Exchange): void {
    this.#start(exchange);
    const { route } = exchange;
    // The client may have left meanwhile.
    if (exchange.isOver || route === undefined) {
      this.#done(exchange);
      return;
    }
    try {
      const result = route.handle(exchange as Parameters<AnyRoute['handle']>[0]);
      if (!(result instanceof Promise)) this.#onResult(exchange, result);
      else
        result.then(
          // One reaction to a handler's promise: each further one costs a turn of the queue.
          (value) => this.#onResult(exchange, value),
          (error: unknown) => this.#fail(exchange, error),
        );
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  /** From here on its answer takes a cork of its own, and it is told when its client leaves. */
  #start(exchange: Exchange): void {
    if (exchange.running) return;
    exchange.watch();
    exchange.running = true;
  }

  #onResult(exchange: Exchange, value: unknown): void {
    exchange.value = value;
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
