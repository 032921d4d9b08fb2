/** Stage `validate`: the body against the schema of its route; `parse` checks the query before it receives a body. */
import { GatewayError } from '../../../domain/errors.ts';
import type { CompiledSchema } from '../../../domain/schema.ts';
import type { RoutedExchange } from './stage.ts';

/** Schema faults that one answer names. */
const FAULTS_SHOWN_MAX = 3;

export function validate(exchange: RoutedExchange): boolean {
  const { bodyCheck } = exchange.ready;
  if (bodyCheck !== undefined) requireValid(bodyCheck, exchange.body, 'body');
  // From here on the answer needs its own cork, and an abort is reported.
  exchange.watch();
  exchange.running = true;
  return true;
}

/** Throws `InvalidInput` that names the first faults: `body` or `query`, and the path in it. */
export function requireValid(schema: CompiledSchema<unknown>, value: unknown, location: string): void {
  if (schema.check(value)) return;
  const faults = schema.faults(value).slice(0, FAULTS_SHOWN_MAX);
  throw new GatewayError(
    'InvalidInput',
    faults.map((fault) => `${location}${fault.path}: ${fault.message}`).join('; '),
  );
}
