/** Dynamic registration (RFC 7591) without storage: the client id is the registration, sealed. */
import { GatewayError } from '../../domain/errors.ts';
import {
  CLIENT_NAME_MAX,
  judgeRedirect,
  REDIRECTS_MAX,
  type RedirectRules,
} from '../../domain/oauth/clients.ts';
import { SCOPES } from '../../domain/oauth/scopes.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { readJson } from '../http/exchange/json.ts';
import { shownName } from './client-name.ts';
import { CLIENT_ID_MAX } from './clients.ts';
import type { Sealers } from './sealed.ts';

const UNNAMED = 'A host without a name';
type Fields = Readonly<Record<string, unknown>>;

/** The answer to a registration. Throws `OAuthInvalidRedirectUri` and `OAuthInvalidClientMetadata`. */
export function register(sealers: Sealers, rules: RedirectRules, body: Buffer, nowMs: number): object {
  const fields = readFields(body);
  const redirectUris = readRedirects(fields['redirect_uris'], rules);
  requireText(fields, 'client_name');
  requireText(fields, 'scope');
  requireAmong(fields, 'grant_types', 'authorization_code');
  requireAmong(fields, 'response_types', 'code');
  const name = shownName(fields['client_name'], CLIENT_NAME_MAX) ?? UNNAMED;
  const clientId = sealers.registrations.seal({ name, redirectUris });
  if (clientId.length > CLIENT_ID_MAX) refuse('name and redirect URIs are too long together');
  const scope = typeof fields['scope'] === 'string' ? known(fields['scope']) : '';
  return {
    client_id: clientId,
    client_id_issued_at: Math.floor(nowMs / SECOND_MS),
    client_name: name,
    redirect_uris: redirectUris,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    // Whatever was asked for: a secret would have to be stored, and proves nothing of a program that anyone can copy.
    token_endpoint_auth_method: 'none',
    ...(scope === '' ? {} : { scope }),
  };
}

function readFields(body: Buffer): Fields {
  let value: unknown;
  try {
    ({ value } = readJson(body));
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return refuse('the body is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return refuse('the body is no object');
  return value as Fields;
}

/** Those that are allowed: the answer names what was registered (RFC 7591 2). Cursor sends three kinds at once. */
function readRedirects(sent: unknown, rules: RedirectRules): string[] {
  const refused = (detail: string): never => {
    throw new GatewayError('OAuthInvalidRedirectUri', detail);
  };
  if (!Array.isArray(sent) || sent.length === 0) return refused('redirect_uris: at least one is required');
  if (sent.length > REDIRECTS_MAX) return refused(`redirect_uris: at most ${REDIRECTS_MAX}`);
  const kept: string[] = [];
  const reasons: string[] = [];
  for (const [index, uri] of sent.entries()) {
    if (typeof uri !== 'string') return refused(`redirect_uris: item ${index} is no text`);
    const judged = judgeRedirect(uri, rules);
    if (judged.ok) kept.push(uri);
    else reasons.push(`item ${index} ${judged.reason}`);
  }
  return kept.length > 0 ? kept : refused(`redirect_uris: ${reasons.join(', ')}`);
}

function requireText(fields: Fields, name: string): void {
  const value = fields[name];
  if (value !== undefined && value !== null && typeof value !== 'string') refuse(`${name} is no text`);
}

/** A list that names kinds, if there is one, has the kind that is served. */
function requireAmong(fields: Fields, name: string, kind: string): void {
  const value = fields[name];
  if (value === undefined || value === null) return;
  if (!Array.isArray(value) || !value.includes(kind)) refuse(`${name}: ${kind} is served`);
}

function known(scope: string): string {
  return scope
    .split(' ')
    .filter((name) => SCOPES.includes(name))
    .join(' ');
}

function refuse(detail: string): never {
  throw new GatewayError('OAuthInvalidClientMetadata', detail);
}
