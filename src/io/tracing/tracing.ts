/**
 * Chooses the requests that are traced, and opens and ends the span of each (docs/operations.md, Traces). Exists only with
 * `Telemetry.sampleRatio` above 0.
 */
import { type ErrorName, errorRow } from '../../domain/errors.ts';
import type { Clock } from '../../domain/time.ts';
import { tracestateOf } from '../http-client/headers.ts';
import { isSampled, openTrace, type SpanSink, type TraceSpan } from './span.ts';

const SERVER_ERROR = 500;

interface TracingOptions {
  readonly sink: SpanSink;
  /** 0 to 1. */
  readonly sampleRatio: number;
  /** 0 to 1, without 1. */
  readonly random: () => number;
  readonly elapsed: () => number;
  readonly clock: Clock;
}

/** A request whose head has arrived; the pipeline's exchange fits. */
interface NewRequest {
  /** Well formed. */
  readonly traceparent: string | undefined;
  readonly nowMs: number;
  /** Start on the clock of `elapsed`. */
  readonly startedMs: number;
  header(name: string): string | undefined;
}

/** Facts that a request's span reports; the pipeline's record of a finished request fits. */
interface TracedRequest {
  readonly method: string;
  readonly route: string;
  readonly path: string;
  readonly status: number;
  readonly error: ErrorName | undefined;
  readonly responseBytes: number;
  readonly clientAddress: string;
  readonly userAgent: string;
  readonly requestId: string;
}

export class Tracing {
  readonly #options: TracingOptions;
  sampled = 0;

  constructor(options: TracingOptions) {
    this.#options = options;
  }

  /**
   * The span of a request, or undefined. A trusted peer's decision counts; any other caller could have all its requests
   * recorded. Its trace id is continued either way.
   */
  begin(request: NewRequest, isTrusted: boolean): TraceSpan | undefined {
    const { traceparent, nowMs, startedMs } = request;
    const { sink, elapsed, random, sampleRatio } = this.#options;
    const isChosen = isTrusted && traceparent !== undefined ? isSampled(traceparent) : random() < sampleRatio;
    if (!isChosen) return undefined;
    this.sampled += 1;
    const tracestate = tracestateOf(request);
    return openTrace({ traceparent, tracestate, sink, elapsed, originMs: nowMs - startedMs }, startedMs);
  }

  /** The span of work that no request asked for, or undefined. The ratio alone decides. */
  beginWork(name: string): TraceSpan | undefined {
    const { sink, elapsed, random, sampleRatio, clock } = this.#options;
    if (random() >= sampleRatio) return undefined;
    const startMs = elapsed();
    const originMs = clock() - startMs;
    const options = { traceparent: undefined, tracestate: undefined, sink, elapsed, originMs };
    return openTrace(options, startMs, name, 'internal');
  }

  /** Names and attributes of the HTTP conventions; never a query, a header or a user. */
  end(span: TraceSpan, request: TracedRequest): void {
    const { method, route, path, status, error, responseBytes, clientAddress, userAgent } = request;
    span.name = route === '' ? method : `${method} ${route}`;
    span.set({
      'http.request.method': method,
      'http.route': route === '' ? undefined : route,
      'url.path': path,
      'http.response.status_code': status === 0 ? undefined : status,
      'http.response.body.size': responseBytes,
      'client.address': clientAddress,
      'user_agent.original': userAgent === '' ? undefined : userAgent,
      'network.protocol.name': 'http',
      'network.protocol.version': '1.1',
      'gatehouse.request_id': request.requestId,
      'gatehouse.error': error,
    });
    span.end(failureOf(status, error));
  }
}

/** A refusal of the caller is no error of the server (HTTP conventions, span status). */
function failureOf(status: number, error: ErrorName | undefined): string | undefined {
  if (status === 0) return 'client_disconnected';
  if (error !== undefined && errorRow(error).status >= SERVER_ERROR) return error;
  return status >= SERVER_ERROR ? String(status) : undefined;
}
