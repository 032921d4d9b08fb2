/** Checks the error that a promise was rejected with, for tests of refusals. */
import type { Test } from 'tap';
import { GatewayError } from '../../src/domain/errors.ts';

/** Checks that `promise` rejects with this row of the error table; gives the error back for closer looks. */
export async function rejectsWith(t: Test, promise: Promise<unknown>, row: string): Promise<GatewayError> {
  const error: unknown = await promise.then(
    (value) => new Error(`resolved with ${String(value)}`),
    (reason: unknown) => reason,
  );
  if (!(error instanceof GatewayError)) {
    t.fail(`expected ${row}, got ${String(error)}`);
    return new GatewayError('InternalError');
  }
  t.equal(error.row, row);
  return error;
}
