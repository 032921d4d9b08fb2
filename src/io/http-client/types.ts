/** What a call to a backend module is: the request, the answer, and the ways to fail. */

import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import type { RefusedBy } from '../../domain/limits/bounds.ts';
import type { Holder } from '../../domain/limits/holders.ts';
import type { GatheringBody } from '../http/stream.ts';
import type { RequestLine } from './request-head.ts';

export interface ModuleRequest extends RequestLine {
  readonly body?: string | undefined;
  /** Over everything: waiting, connecting, headers, body, and the repeated attempt of a GET. */
  readonly timeoutMs: number;
  /** Names the breaker: one per tool, resource or proxied path. */
  readonly endpoint: string;
  /** Whose share of the module's calls it takes; the gateway's own calls have none. */
  readonly holder?: Holder;
  readonly signal?: AbortSignal;
  /** Gets the means to give the call up, once it is under way; lighter than a signal where a call is all it stops. */
  readonly onBegin?: (stop: () => void) => void;
}

/** A call whose bodies are never held whole. */
export interface RelayRequest extends RequestLine {
  /** Names the breaker. */
  readonly endpoint: string;
  readonly body: GatheringBody | undefined;
  /** Whose shares of the module the call takes; the gateway's own calls have none. */
  readonly holder?: Holder;
  /** Between two bytes, in either direction, and before the first one. */
  readonly timeoutMs: number;
}

export interface ModuleAnswer {
  readonly status: number;
  /** '' when the module sent none, or one that must not be copied into a header. */
  readonly contentType: string;
  /** At most `ANSWER_MAX_BYTES`, as it came. */
  readonly body: Buffer;
}

/**
 * - `ModuleFailed`: connection refused, broken or cut, no HTTP, a redirect, a content coding nobody asked for.
 * - `ModuleUnavailable`: the breaker is open, or the client is closed. `Overloaded`: too many calls to that origin;
 *   `AccessRateLimit`: too many of them are this caller's.
 * - `Aborted`: the caller's signal; nobody waits for an answer, so it is no row of the error table.
 */
export type ModuleError =
  | Extract<
      ErrorName,
      | 'ModuleFailed'
      | 'ModuleTimedOut'
      | 'ModuleUnavailable'
      | 'ModuleAnswerTooLarge'
      | 'Overloaded'
      | 'AccessRateLimit'
    >
  | 'Aborted';

export type ModuleResult =
  | { readonly ok: true; readonly answer: ModuleAnswer; readonly elapsedMs: number }
  | {
      readonly ok: false;
      readonly error: ModuleError;
      /** For the log: never shown to a caller. */
      readonly reason: string;
      /** Of `AccessRateLimit`: whose share is used up. */
      readonly refusedBy?: RefusedBy;
      readonly elapsedMs: number;
    };

export interface ModuleCounters {
  readonly calls: number;
  readonly answered: number;
  readonly retried: number;
  /** Calls under way or waiting, all origins. */
  readonly pending: number;
  readonly failed: Readonly<Record<ModuleError, number>>;
  /** Endpoints whose breaker is open now. */
  readonly breakersOpen: readonly string[];
}

/** What a caller is told whose share of a module's calls is used up. */
export function tooManyCalls(refusedBy?: RefusedBy): GatewayError {
  const scope = refusedBy === 'network' ? 'i' : undefined;
  return new GatewayError('AccessRateLimit', 'too many calls to the module at the same time', 1, scope);
}
