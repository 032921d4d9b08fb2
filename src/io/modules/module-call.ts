/** What a call to a backend module is: the request, the answer, and the ways to fail. Types only. */
import type { Readable } from 'node:stream';
import type { ErrorName } from '../../domain/errors.ts';
import type { Target } from './endpoint.ts';

export interface ModuleRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH' | 'HEAD';
  readonly url: Target;
  /** End-to-end headers; hop-by-hop ones are dropped (RFC 9110 7.6.1). */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Over everything: waiting, connecting, headers, body, and the repeated attempt of a GET. */
  readonly timeoutMs: number;
  /** Names the breaker: one per tool, resource or proxied path. */
  readonly endpoint: string;
  readonly signal?: AbortSignal;
  /** Gets the means to give the call up, once it is under way; lighter than a signal where a call is all it stops. */
  readonly onBegin?: (stop: () => void) => void;
}

/** The body of a relayed request. */
export interface RelayedBody {
  readonly stream: Readable;
  /** The module takes what there is, and the next piece has not come. */
  waitsForClient(): boolean;
}

/** A call whose bodies are never held whole. */
export interface RelayRequest extends Pick<ModuleRequest, 'method' | 'url' | 'headers' | 'endpoint'> {
  readonly body: RelayedBody | undefined;
  /** Bytes of the body; undefined: chunked. */
  readonly bodyBytes: number | undefined;
  /** Between two bytes, in either direction, and before the first one. */
  readonly timeoutMs: number;
}

export interface ModuleAnswer {
  readonly status: number;
  /** '' when the module sent none, or one that must not be copied into a header. */
  readonly contentType: string;
  /** All of them as they came, by lower-case name: not fit for an answer before `answerHeaders` has seen them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
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
