/**
 * Expected failures: rows of the error table on their way to the caller. Anything else that is thrown is a bug and is
 * answered as `InternalError` without its message.
 */
import { ERRORS, type ErrorRow } from './error-table.ts';
import type { ScopeCode } from './limits/quotas.ts';

export { ERRORS };

export type ErrorName = keyof typeof ERRORS;

export function errorRow(name: ErrorName): ErrorRow {
  return ERRORS[name];
}

/** JSON-RPC code of a row: its own, or -32000 (tool execution error). */
export function rpcCode(name: ErrorName): number {
  return errorRow(name).rpc ?? -32000;
}

/** An expected failure on its way to the caller. `detail` is public: it names the field or the reason, never a secret. */
export class GatewayError extends Error {
  readonly row: ErrorName;
  readonly detail: string | undefined;
  /** Time of the refusal, else of its row: whole seconds, at least one. */
  readonly retryAfterSeconds: number | undefined;

  /**
   * The scope of the limit, which `X-RateLimit` names. Without it that is the user of the request, else its address.
   */
  readonly scope: ScopeCode | undefined;

  constructor(row: ErrorName, detail?: string, retryAfterSeconds?: number, scope?: ScopeCode) {
    // It goes to the caller, not to a log: without a stack trace a refusal costs half as much.
    const frames = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(ERRORS[row].message);
    Error.stackTraceLimit = frames;
    this.name = 'GatewayError';
    this.row = row;
    this.detail = detail;
    const waitSeconds = retryAfterSeconds ?? errorRow(row).retryAfterSeconds;
    this.retryAfterSeconds = waitSeconds === undefined ? undefined : Math.max(1, Math.ceil(waitSeconds));
    this.scope = scope;
  }
}

/** Conditions that hold whatever comes in. One that does not is a bug of the gateway, and ends what it was found in. */
class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

/** Throws `BrokenInvariant`. `rule`: the sentence that does not hold; a constant, so that the check allocates nothing. */
export function invariant(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new BrokenInvariant(rule);
}
