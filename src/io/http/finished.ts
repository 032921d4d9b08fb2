/** What is told of a request once it is over: to the log and to the metrics. */
import type { ErrorName } from '../../domain/errors.ts';

/** What is known of a request once it is over. */
export interface FinishedRequest {
  readonly method: string;
  /** The route's pattern; '' when none matched. */
  readonly route: string;
  /** As sent, without the query: codes and tokens may stand in a query. */
  readonly path: string;
  /** 0 when the client went away before the answer. */
  readonly status: number;
  readonly error: ErrorName | undefined;
  readonly milliseconds: number;
  /** Bytes of the answer's body. */
  readonly sizeBytes: number;
  readonly address: string;
  readonly userAgent: string;
  readonly userId: string | undefined;
  readonly requestId: string;
  readonly traceparent: string | undefined;
}
