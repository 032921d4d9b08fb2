/** State of an answer, and its parts besides the reply of the route. */
import type { QuotaResult } from '../../../domain/limits/quotas.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import type { Site } from '../../../domain/site.ts';
import type { HeaderList } from '../table/route.ts';
import type { IncomingHead } from './request.ts';

/**
 * State of the response, which only moves down this list.
 * - `open`: no answer yet.
 * - `decided`: the answer is fixed and is written in the next event-loop tick (of `last` requests).
 * - `headersSent`: the body of the answer is still being sent.
 * - `ended`: the answer is complete.
 * - `aborted`: the connection is gone, by the client or by us.
 */
export type ResponsePhase = 'open' | 'decided' | 'headersSent' | 'ended' | 'aborted';

/** Options of a response besides the reply. */
export interface ResponseOptions {
  /** The gateway's own id; its pattern is valid in a header. */
  readonly requestId: string;
  /** Adds `Strict-Transport-Security`. */
  readonly strictTransport: boolean;
  readonly cors: HeaderList;
  /** Shown in `X-RateLimit`; undefined if no limit was charged. */
  readonly quotaResult: QuotaResult | undefined;
  readonly windowSeconds: number;
  /** HEAD: only the length of the body is sent. */
  readonly headOnly: boolean;
  /** The connection closes after this answer. */
  readonly close: boolean;
  /** More of the request may arrive. Closing the connection now would lose the answer in most clients. */
  readonly bodyPending: boolean;
  /** uWebSockets.js must not learn that the answer is complete, unless the connection closes with it. */
  readonly staysPending: boolean;
}

/** The request whose answer is written. */
export interface AnsweredRequest {
  readonly requestId: string;
  readonly services: {
    readonly site: Pick<Site, 'strictTransport'>;
    readonly settings: SettingsReader;
  };
  readonly cors: HeaderList;
  readonly limiter: { readonly quotaResult: QuotaResult | undefined };
  readonly head: Pick<IncomingHead, 'method' | 'header'>;
  readonly bodyRead: boolean;
  readonly last: boolean;
}

export function responseOptions(request: AnsweredRequest, close: boolean): ResponseOptions {
  const { site, settings } = request.services;
  return {
    requestId: request.requestId,
    strictTransport: site.strictTransport,
    cors: request.cors,
    quotaResult: request.limiter.quotaResult,
    windowSeconds: settings.get('RateLimitWindowSeconds'),
    headOnly: request.head.method === 'HEAD',
    close,
    bodyPending: !request.bodyRead,
    staysPending: request.last || !request.bodyRead,
  };
}
