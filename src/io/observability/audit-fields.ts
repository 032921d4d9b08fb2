/** Which request an audit record is of: our id, and the caller's own beside it where there is one. */
import type { RouteContext } from '../http/table/route.ts';

export function requestIdsOf({
  requestId,
  clientRequestId,
}: Pick<RouteContext, 'requestId' | 'clientRequestId'>): { requestId: string; clientRequestId?: string } {
  return clientRequestId === undefined ? { requestId } : { requestId, clientRequestId };
}
