/** What is told of a request once it is over: to the log and to the metrics. */
import type { ErrorName } from '../../domain/errors.ts';
import type { AnyRoute } from './route.ts';

/** What is known of a request once it is over. */
export interface FinishedRequest {
  readonly method: string;
  /** The route's pattern; '' when none matched. */
  readonly route: string;
  /** As sent, without the query and what else may hold a code; see `pathShown`. */
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

/** Three segments name what was meant; what follows may be a code at the end of a path that was nearly right. */
const UNROUTED_SHOWN = /^(?:\/[^/]*){3}(?=\/)/;

/** A path for the log: the pattern of a route whose path is a secret, the beginning of one that no route took. */
export function pathShown(route: AnyRoute | undefined, path: string): string {
  if (route?.secretPath === true) return route.path;
  if (route !== undefined) return path;
  const shown = UNROUTED_SHOWN.exec(path)?.[0];
  return shown === undefined ? path : `${shown}/...`;
}
