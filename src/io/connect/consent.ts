/** Content of the page of a request, and the person's answer, which becomes a code. */
import { randomInt } from 'node:crypto';
import { user } from '../../actors/accounts/user.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { Destination } from '../../domain/oauth/clients.ts';
import { CODE_LIFE_MS } from '../../domain/oauth/grants.ts';
import {
  ACCESS_SCOPES,
  type AccessScope,
  callerClassFor,
  scopesGiven,
  widestOf,
} from '../../domain/oauth/scopes.ts';
import { FRESH_LOGIN_MS, type SessionContext } from '../../domain/sessions.ts';
import { toIso } from '../../domain/time.ts';
import {
  type ChallengeDeps,
  openChallenge,
  originOf,
  usedOf,
  usingChallenge,
} from '../accounts/login-parts.ts';
import { nicknameOf } from '../accounts/nicknames.ts';
import { Reply, type RouteContext } from '../http/table/route.ts';
import type { Catalog } from '../mcp/catalog.ts';
import {
  type AuthorizationDeps,
  type AuthorizationRequest,
  answerTo,
  readAuthorization,
  type ShownClient,
} from './authorization.ts';
import type { ConnectCounters } from './counters.ts';
import { originOfRequest, type Resource } from './resources.ts';
import { digest, type Sealers } from './sealed.ts';

/** Ids of codes share the numbers of challenges, which are spent in the same list. */
const CODE_ID_RANGE = 2 ** 48 - 1;

export interface ConsentDeps extends AuthorizationDeps {
  readonly challenges: ChallengeDeps;
  readonly sealers: Sealers;
  readonly catalog: { readonly current: Catalog };
  readonly counters: ConnectCounters;
}

interface ConsentView {
  readonly step: 'login' | 'consent' | 'error' | 'redirect';
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly redirect: string | null;
  readonly client: ShownClient | null;
  readonly destination: Destination | null;
  readonly resource: { readonly address: string; readonly name: string } | null;
  readonly scopes: readonly string[];
  /** Access that the host asked for; the person chooses. */
  readonly access: AccessScope | null;
  /** The login is too old to give full access. */
  readonly fullNeedsLogin: boolean;
  readonly tools: readonly ToolView[];
  readonly account: AccountShown | null;
  readonly challenge: {
    readonly challengeId: number;
    readonly code: string;
    readonly expiresUtc: string;
  } | null;
}

interface ToolView {
  readonly name: string;
  readonly title: string | null;
  readonly description: string;
  readonly destructive: boolean;
  readonly readOnly: boolean;
  /** The choices that open it. */
  readonly access: readonly AccessScope[];
}

interface AccountShown {
  readonly userId: string;
  readonly nickname: string | null;
  readonly keyName: string | null;
  readonly keyType: string;
  readonly loginUtc: string;
}

const NOTHING: Omit<ConsentView, 'step'> = {
  error: null,
  redirect: null,
  client: null,
  destination: null,
  resource: null,
  scopes: [],
  access: null,
  fullNeedsLogin: false,
  tools: [],
  account: null,
  challenge: null,
};

/** A fault that the host learns by a redirect is the error of the answer for log and metrics. */
export async function viewConsent(deps: ConsentDeps, context: RouteContext): Promise<ConsentView | Reply> {
  requireOwnPage(context, false);
  const { session } = context;
  const rawQuery = context.search.slice(1);
  const result = await readAuthorization(deps, context, rawQuery).catch(shownError);
  const account = session === undefined ? null : await accountOf(context, session);
  if ('code' in result) return { ...NOTHING, step: 'error', error: result, account };
  if (result.step === 'redirect') {
    const view: ConsentView = { ...NOTHING, step: 'redirect', redirect: result.redirect };
    return Reply.json(200, { result: view }, [], result.error);
  }
  if (result.step === 'login') return { ...NOTHING, step: 'login', client: result.client };
  const { request } = result;
  const shown = { ...NOTHING, ...viewOf(deps, context, request), account };
  if (session === undefined) return { ...shown, step: 'login' };
  const { id, code, expiresMs } = openChallenge(deps.challenges, context, 'consent', digest(rawQuery));
  const challenge = { challengeId: id, code, expiresUtc: toIso(expiresMs) };
  const fullNeedsLogin = context.nowMs - session.createdMs > FRESH_LOGIN_MS;
  return { ...shown, step: 'consent', challenge, fullNeedsLogin };
}

export interface Decision {
  readonly request: string;
  readonly challengeId: string | number;
  readonly code: string;
  readonly allow: boolean;
  /** Access that the person chose; without it that which the host asked for. */
  readonly access?: AccessScope;
}

/** The address that the browser goes to: with a code, or with the refusal. */
export async function decide(
  deps: ConsentDeps,
  context: RouteContext<unknown, Decision, SessionContext>,
): Promise<string> {
  requireOwnPage(context, true);
  const { body, session, actors, nowMs } = context;
  const result = await readAuthorization(deps, context, body.request);
  if (result.step !== 'ready') throw new GatewayError('InvalidInput', 'request: is not one to decide');
  const { request } = result;
  const { client, redirectUri, resource, state } = request;
  const access = body.access ?? widestOf(request.scopes) ?? 'read';
  const use = { challengeId: body.challengeId, kinds: ['consent'] as const, subject: digest(body.request) };
  const keyId = await usingChallenge(deps.challenges, context, use, (challenge) => {
    // The id is a number that can be seen; the handle is not.
    if (challenge.code !== body.code) throw new GatewayError('ChallengeExpired');
    return actors.ask(user, session.userId, {
      type: 'decideConsent',
      sessionId: session.id,
      challenge: usedOf(context, challenge),
      allow: body.allow,
      needsFresh: access === 'full',
      appId: client.appId,
      origin: originOf(context),
    });
  });
  deps.counters.consent(body.allow ? 'allowed' : 'refused');
  if (!body.allow) return answerTo(context, redirectUri, state, { error: 'access_denied' });
  const code = deps.sealers.codes.seal({
    id: randomInt(CODE_ID_RANGE),
    endsMs: nowMs + CODE_LIFE_MS,
    userId: session.userId,
    sessionId: session.id,
    keyId,
    redirectUri,
    challenge: request.challenge,
    host: {
      clientKey: digest(client.id),
      kind: client.kind,
      name: client.name,
      host: request.destination.host,
      appId: client.appId,
      audience: resource.path,
      scopes: scopesGiven(access, request.scopes),
    },
  });
  return answerTo(context, redirectUri, state, { code });
}

/** Throws `Forbidden` for a page of another origin, also of one in `AllowedOrigins`. `POST` requires the field. */
function requireOwnPage(context: Pick<RouteContext, 'site' | 'header'>, isRequired: boolean): void {
  const { header, site } = context;
  const fetchSite = header('sec-fetch-site');
  if (fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none')
    throw new GatewayError('Forbidden', 'Sec-Fetch-Site');
  const origin = header('origin');
  const own = [new URL(site.baseUrl).origin, new URL(originOfRequest(context)).origin];
  if (origin === undefined ? isRequired : !own.includes(origin))
    throw new GatewayError('Forbidden', 'Origin');
}

function shownError(error: unknown): { code: string; message: string } {
  const isShown =
    error instanceof GatewayError &&
    (error.row === 'OAuthInvalidClient' || error.row === 'OAuthInvalidRequest');
  if (!isShown) throw error;
  const code = error.row === 'OAuthInvalidClient' ? 'invalid_client' : 'invalid_request';
  return { code, message: error.detail ?? error.message };
}

function viewOf({ catalog }: ConsentDeps, context: RouteContext, request: AuthorizationRequest) {
  const { client, destination, resource, scopes } = request;
  const { kind, name, host } = client;
  return {
    client: { kind, name, host },
    destination,
    resource: { address: `${originOfRequest(context)}${resource.path}`, name: resource.name },
    scopes,
    access: widestOf(scopes) ?? 'read',
    tools: toolsAt(catalog.current, resource),
  };
}

/** The tools that some choice opens at the resource, in the order of the catalog. */
function toolsAt({ tools, whole, profiles }: Catalog, { profile }: Resource): ToolView[] {
  const view = profile === undefined ? whole : profiles.get(profile);
  return [...tools.values()]
    .filter(({ name }) => view?.hasTool(name) === true)
    .map(({ name, callers, row: { title, description, annotations } }) => ({
      name,
      title: title ?? null,
      description,
      destructive: annotations?.destructiveHint === true,
      readOnly: annotations?.readOnlyHint === true,
      access: ACCESS_SCOPES.filter((access) => callers.has(callerClassFor(access))),
    }))
    .filter(({ access }) => access.length > 0);
}

async function accountOf(
  { actors }: RouteContext,
  { userId, keyId, keyType, createdMs }: SessionContext,
): Promise<AccountShown> {
  const keys = await actors.query(user, userId, { type: 'keys' });
  const keyName = keys.find(({ id }) => id === keyId)?.name ?? null;
  return { userId, nickname: nicknameOf(actors, userId), keyName, keyType, loginUtc: toIso(createdMs) };
}
