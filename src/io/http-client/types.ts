/** A call to a backend module: request, answer and failures. */

import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import type { RefusedBy } from '../../domain/limits/bounds.ts';
import type { Holder } from '../../domain/limits/holders.ts';
import type { PrebufferableBody } from '../http/body/incoming-body.ts';
import type { RequestLine } from './request-head.ts';

export interface ModuleRequest extends RequestLine {
  readonly body?: string | undefined;
  /** Time for all phases: queue, connect, headers, body, and the repeated attempt of a GET. */
  readonly timeoutMs: number;
  /** Key of the breaker: one for each tool, resource or proxied path. */
  readonly endpoint: string;
  /** The caller whose share of the module's calls is used; absent for the gateway's own calls. */
  readonly holder?: Holder;
  readonly signal?: AbortSignal;
  /** Receives a function that aborts the call; cheaper than a signal for a single call. */
  readonly onBegin?: (stop: () => void) => void;
  /** Reads the answer with this head as it arrives; undefined: the answer is kept as it is. */
  readonly readerOf?: ((status: number, contentType: string) => AnswerReader | undefined) | undefined;
  /** Carries the body in place of a connection; method, path and headers are not sent. */
  readonly channel?: CallChannel | undefined;
}

/** Makes the body from the bytes of an answer. */
export interface AnswerReader {
  /** Returns the fault of the bytes, which are valid during this call only. */
  read(bytes: Buffer): string | undefined;
  /** The answer is complete. Undefined: it has no valid body. */
  end(): Buffer | undefined;
}

/** A call whose bodies are streamed, never buffered whole. */
export interface RelayRequest extends RequestLine {
  readonly endpoint: string;
  readonly body: PrebufferableBody | undefined;
  /** The caller whose shares of the module are used; absent for the gateway's own calls. */
  readonly holder?: Holder;
  /** Maximum silence between two bytes in either direction, and before the first one. */
  readonly timeoutMs: number;
}

/** Bytes of an answer that the gateway itself parses: the facts of a file, a message or a code. Larger ones have no facts. */
export const FACTS_MAX_BYTES = 64 * 1024;

export interface ModuleAnswer {
  readonly status: number;
  /** '' when the module sent none, or one that must not be copied into a header. */
  readonly contentType: string;
  /** Bytes of the body, at most `ANSWER_MAX_BYTES`, unchanged. */
  readonly body: Buffer;
}

/**
 * - `ModuleFailed`: connection refused, broken or cut, no HTTP, a redirect, an unrequested content coding.
 * - `ModuleUnavailable`: the breaker is open, or the client is closed. `Overloaded`: too many calls to that origin;
 *   `AccessRateLimit`: too many of them are this caller's.
 * - `Aborted`: the caller's signal. No answer is expected, so the error table has no entry.
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
      /** Reason for the log only; never sent to a caller. */
      readonly reason: string;
      /** The exhausted share, with `AccessRateLimit`. */
      readonly refusedBy?: RefusedBy;
      readonly elapsedMs: number;
    };

/** The way of one call that takes no connection, such as the pipes of a process. */
export interface CallChannel {
  /**
   * Sends the body. `ended` is called at most once, and after this has returned. The result forgets the call, whose answer
   * is then dropped; undefined: nothing was sent.
   */
  begin(body: string, ended: (end: ChannelEnd) => void): (() => void) | undefined;
}

export type ChannelEnd =
  | { readonly body: Buffer }
  | {
      readonly error: Extract<ModuleError, 'ModuleFailed' | 'ModuleAnswerTooLarge'>;
      readonly reason: string;
    };

export interface ModuleCounters {
  readonly calls: number;
  readonly answered: number;
  readonly retried: number;
  /** Calls in flight or queued, all origins. */
  readonly pending: number;
  readonly failed: Readonly<Record<ModuleError, number>>;
  /** Endpoints whose breaker is open now. */
  readonly breakersOpen: readonly string[];
}

/** The error for a caller whose share of a module's calls is exhausted. */
export function tooManyCalls(refusedBy?: RefusedBy): GatewayError {
  const scope = refusedBy === 'network' ? 'i' : undefined;
  return new GatewayError('AccessRateLimit', 'too many calls to the module at the same time', 1, scope);
}
