/** Ids of the request in an audit record: ours, and the caller's own beside it where there is one. */
import type { RouteContext } from '../http/table/route.ts';

export function requestIdsOf({
  requestId,
  clientRequestId,
}: Pick<RouteContext, 'requestId' | 'clientRequestId'>): { requestId: string; clientRequestId?: string } {
  return clientRequestId === undefined ? { requestId } : { requestId, clientRequestId };
}
