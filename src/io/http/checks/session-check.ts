/** The check of a token's session by a request, with a span where the request is sampled. */
import type { SessionKind } from '../../../domain/sessions.ts';
import { endSessionCheck, openSessionCheck } from '../../tracing/calls.ts';
import type { RouteContext, SessionLookup, SessionTerms } from '../table/route.ts';

/** Checks a session with `authenticate` of the look-up. */
export function checkSession(
  sessions: SessionLookup,
  { client, span: parent }: Pick<RouteContext, 'client' | 'span'>,
  token: string,
  kind: SessionKind,
  charge: Parameters<SessionLookup['authenticate']>[2],
  terms?: SessionTerms,
): ReturnType<SessionLookup['authenticate']> {
  if (parent === undefined) return sessions.authenticate(token, kind, charge, client, terms);
  const span = openSessionCheck(parent, kind);
  let outcome: 'valid' | 'unknown' | undefined;
  try {
    const found = sessions.authenticate(token, kind, charge, client, terms);
    outcome = found === undefined ? 'unknown' : 'valid';
    return found;
  } finally {
    endSessionCheck(span, outcome);
  }
}
