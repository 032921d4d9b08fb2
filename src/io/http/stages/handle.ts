/**
 * Stage `handle`: runs the handler of the route at the end of the event-loop tick in which its request became complete. Reason:
 * docs/optimizations.md.
 */
import type { Exchange } from '../exchange/exchange.ts';
import type { AnyRoute } from '../table/route.ts';
import { handled } from './send.ts';
import type { PipelineContext, RoutedExchange } from './stage.ts';

export function handle(exchange: RoutedExchange, pipeline: PipelineContext): boolean {
  const { route } = exchange.ready;
  // The client may have left.
  if (exchange.isOver) {
    handled(exchange, pipeline);
    return false;
  }
  exchange.noteWork();
  if (exchange.span !== undefined) exchange.span = exchange.span.child(`route ${route.path}`);
  try {
    const result = route.handle(exchange as Parameters<AnyRoute['handle']>[0]);
    if (!(result instanceof Promise)) {
      exchange.value = result;
      endRoute(exchange);
      return true;
    }
    result.then(
      // One reaction to the promise: each further one costs a microtask.
      (value) => {
        exchange.value = value;
        endRoute(exchange);
        pipeline.proceed(exchange);
      },
      (error: unknown) => {
        endRoute(exchange);
        try {
          pipeline.fail(exchange, error);
        } finally {
          handled(exchange, pipeline);
        }
      },
    );
    return false;
  } catch (error) {
    endRoute(exchange);
    throw error;
  }
}

/** The span of a sampled request's handler. */
function endRoute({ span }: Exchange): void {
  if (span !== undefined && span !== span.root) span.end();
}
