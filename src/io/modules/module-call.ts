/** What a call to a backend module is: the request, the answer, and the ways to fail. Types only. */
import type { ErrorName } from '../../domain/errors.ts';
import type { IncomingBody } from '../http/stream.ts';
import type { RequestLine } from './request-head.ts';

export interface ModuleRequest extends RequestLine {
  readonly body?: string | undefined;
  /** Over everything: waiting, connecting, headers, body, and the repeated attempt of a GET. */
  readonly timeoutMs: number;
  /** Names the breaker: one per tool, resource or proxied path. */
  readonly endpoint: string;
  readonly signal?: AbortSignal;
  /** Gets the means to give the call up, once it is under way; lighter than a signal where a call is all it stops. */
  readonly onBegin?: (stop: () => void) => void;
}

/** A call whose bodies are never held whole. */
export interface RelayRequest extends RequestLine {
  /** Names the breaker. */
  readonly endpoint: string;
  readonly body: IncomingBody | undefined;
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
 * - `ModuleUnavailable`: the breaker is open, or the client is closed. `Overloaded`: too many calls to that origin.
 * - `Aborted`: the caller's signal; nobody waits for an answer, so it is no row of the error table.
 */
export type ModuleError =
  | Extract<
      ErrorName,
      'ModuleFailed' | 'ModuleTimedOut' | 'ModuleUnavailable' | 'ModuleAnswerTooLarge' | 'Overloaded'
    >
  | 'Aborted';

export type ModuleResult =
  | { readonly ok: true; readonly answer: ModuleAnswer; readonly elapsedMs: number }
  | {
      readonly ok: false;
      readonly error: ModuleError;
      /** For the log: never shown to a caller. */
      readonly reason: string;
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
