/** Requests and errors of the authorization server: forms (RFC 6749 appendix B), errors as RFC 6749 5.2 has them. */
import { errorRow, GatewayError } from '../../domain/errors.ts';
import { type HeaderList, Reply, type RouteContext } from '../http/table/route.ts';

export const FORM_MAX_BYTES = 16 * 1024;
const BASIC_CHALLENGE = ['WWW-Authenticate', 'Basic realm="connect"'] as const;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

export type Form = ReadonlyMap<string, string>;

/** Throws `OAuthInvalidRequest` for another media type and a field that is sent twice. */
export function readForm({ header, rawBody }: Pick<RouteContext, 'header' | 'rawBody'>): Form {
  if (!FORM_TYPE.test(header('content-type') ?? ''))
    throw new GatewayError('OAuthInvalidRequest', 'Content-Type is application/x-www-form-urlencoded');
  const fields = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(rawBody.toString('utf8'))) {
    if (fields.has(name)) throw new GatewayError('OAuthInvalidRequest', `${name.slice(0, 64)} is sent twice`);
    if (value !== '') fields.set(name, value);
  }
  return fields;
}

/** Throws `OAuthInvalidRequest` that names the field. */
export function requireField(form: Form, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new GatewayError('OAuthInvalidRequest', `${name} is required`);
  return value;
}

/** The form of every error of these routes, those of the pipeline included. */
export function oauthError(error: GatewayError, { header }: Pick<RouteContext, 'header'>): Reply {
  const { status, oauth, message } = errorRow(error.row);
  // RFC 6749 5.2: a client that tried to authenticate with the field is answered with one.
  const isChallenged = status === 401 && header('authorization') !== undefined;
  const headers: HeaderList = isChallenged ? [BASIC_CHALLENGE] : [];
  const body = {
    error: oauth ?? usualError(status),
    error_description: descriptionOf(error.detail ?? message),
  };
  return Reply.json(status, body, headers, error.row);
}

function usualError(status: number): string {
  if (status === 500) return 'server_error';
  return status === 429 || status > 500 ? 'temporarily_unavailable' : 'invalid_request';
}

/** RFC 6749 5.2 allows printable ASCII without quotes and backslashes. */
function descriptionOf(text: string): string {
  return text.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, '?');
}
