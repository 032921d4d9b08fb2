/**
 * mcp_login (spec 4.2, 5.1, 7.2): reads headers only and returns a bearer session; cookies and the body are ignored. Order
 * of the checks: limit of the address, form, limit of the key, timestamp, owner of the key, then its actor.
 */

import { user } from '../../actors/accounts/user.ts';
import type { LoggedIn, McpLogin } from '../../actors/accounts/user-login.ts';
import { GatewayError } from '../../domain/errors.ts';
import { ID_EXAMPLE, SIGNATURE_EXAMPLE } from '../../domain/examples.ts';
import { parseId } from '../../domain/ids.ts';
import { isTimestampFresh, mcpLoginMessage, parseUnixSeconds } from '../../domain/proofs.ts';
import { idText, nullable, object, oneOf, text, utcText } from '../../domain/schema.ts';
import { LOGIN_TYPES, type LoginType } from '../../domain/sessions.ts';
import { toIso } from '../../domain/time.ts';
import {
  auditRefusal,
  countingUnknownKeys,
  holderOf,
  originOf,
  PUBLIC_KEY_BYTES,
  requireBytes,
  SIGNATURE_BYTES,
} from '../accounts/login-parts.ts';
import { indexEntryOf, ownerOf } from '../http/checks/session-lookup.ts';
import { readBearer } from '../http/exchange/request.ts';
import { defineRoute, type RouteContext } from '../http/table/route.ts';

const HEADERS = ['x-publickey', 'x-timestamp', 'x-signature', 'x-app-id'] as const;

const SESSION_EXAMPLE = {
  sessionId: 'kQ0WmYxZJ3v8Tc1Pzq5N2b7Rf4Ls9Dg6Ha0Ue3Iw',
  expiresUtc: '2026-11-21T09:30:00.000Z',
  appId: ID_EXAMPLE,
  userId: ID_EXAMPLE,
};
const PROOF_EXAMPLE = { 'X-Timestamp': '1795167000', 'X-Signature': SIGNATURE_EXAMPLE };

interface McpLoginRequest {
  readonly publicKey: string;
  readonly loginType: LoginType;
  readonly appId: string | null;
  readonly proof: { readonly unixSeconds: bigint; readonly signature: Uint8Array } | undefined;
}

export const mcpLogin = defineRoute({
  method: 'POST',
  path: '/auth/v1/mcp_login',
  summary: 'Log an agent in with its key',
  spec: '4.2',
  description:
    'Fields of the head alone decide; a body is not read. McpBasic: `X-PublicKey`. McpVerified: with `X-Timestamp` and `X-Signature`. McpApp: `X-PublicKey` with `X-App-Id`, and a signature where it is to be proved. The key has to be enrolled with `mcpAccess`. The session of a bearer of the same account that comes along ends.',
  docs: {
    bearer: true,
    reads: {
      'X-PublicKey': 'required',
      'X-Timestamp': 'optional',
      'X-Signature': 'optional',
      'X-App-Id': 'optional',
    },
    examples: {
      McpBasic: { result: { ...SESSION_EXAMPLE, loginType: 'McpBasic', appId: null, userId: null } },
      McpVerified: {
        headers: PROOF_EXAMPLE,
        result: { ...SESSION_EXAMPLE, loginType: 'McpVerified', appId: null },
      },
      McpApp: {
        headers: { 'X-App-Id': ID_EXAMPLE },
        result: { ...SESSION_EXAMPLE, loginType: 'McpApp', userId: null },
      },
    },
  },
  group: 'auth',
  auth: 'none',
  limits: ['Self'],
  result: object({
    sessionId: text({ description: 'The bearer', examples: ['kQ0WmYxZJ3v8Tc1Pzq5N2b7Rf4Ls9Dg6Ha0Ue3Iw'] }),
    loginType: oneOf(LOGIN_TYPES),
    expiresUtc: utcText(),
    appId: nullable(idText()),
    userId: nullable(idText('Of the account. Null without a signature: a public key is no secret')),
  }),
  errors: [
    'InvalidInput',
    'SessionNotFound',
    'AccountNotFound',
    'AccessDenied',
    'ChallengeExpired',
    'InvalidSignature',
    'TaskTimedOut',
  ],
  async handle(context) {
    context.limiter.chargeAnonymous(1);
    const request = readRequest(context);
    const { appId, proof } = request;
    const login = await loginOf(context, request);
    return {
      sessionId: login.token,
      loginType: login.loginType,
      expiresUtc: toIso(login.expiresMs),
      appId,
      // A signature that was sent has been verified by now.
      userId: proof === undefined ? null : login.userId,
    };
  },
});

/** A login with a signature succeeds even while other callers exhaust the limit of the public key (decision 0105). */
async function loginOf(context: RouteContext, request: McpLoginRequest): Promise<LoggedIn> {
  const { publicKey, proof } = request;
  if (proof !== undefined)
    return context.limiter.chargeProvableKey('m', publicKey, (crowded) => attempt(context, request, crowded));
  context.limiter.chargeKey('m', publicKey, 1);
  return attempt(context, request, false);
}

async function attempt(
  context: RouteContext,
  { publicKey, loginType, appId, proof }: McpLoginRequest,
  crowded: boolean,
): Promise<LoggedIn> {
  if (proof !== undefined && !isTimestampFresh(proof.unixSeconds, context.nowMs)) {
    auditRefusal(context, loginType, 'ChallengeExpired');
    throw new GatewayError('ChallengeExpired');
  }
  return countingUnknownKeys(context, loginType, async () => {
    const holder = holderOf(context.actors, publicKey);
    if (holder === undefined) throw new GatewayError('SessionNotFound');
    const indexEntry = appId === null ? undefined : indexEntryOf(context.actors, appId);
    const previousId = previousOf(context, holder.userId);
    const command: McpLogin = {
      type: 'mcpLogin',
      loginType,
      keyId: holder.keyId,
      publicKey,
      appId,
      ...(indexEntry === undefined ? {} : { indexEntry }),
      ...(previousId === undefined ? {} : { previousId }),
      ...(crowded ? { crowded } : {}),
      origin: originOf(context),
      ...(proof === undefined
        ? {}
        : { proof: { message: mcpLoginMessage(proof.unixSeconds), signature: proof.signature } }),
    };
    return context.actors.ask(user, holder.userId, command);
  });
}

/** The session of the bearer that came with the login, if it is of the same account. Other bearers are ignored. */
function previousOf(context: RouteContext, userId: string): string | undefined {
  const token = readBearer(context.header('authorization'));
  const owner = token === undefined ? undefined : ownerOf(context.actors, 'mcp', token);
  return owner?.userId === userId ? owner.sessionId : undefined;
}

/** Throws `InvalidInput` for half a proof, a repeated header and any malformed value (spec 5.1 rule 1). */
function readRequest(context: RouteContext): McpLoginRequest {
  for (const name of HEADERS) {
    if (context.repeatedHeaders.has(name)) throw new GatewayError('InvalidInput', `${name}: sent twice`);
  }
  const [publicKey, timestamp, signature, app] = HEADERS.map((name) => context.header(name));
  if (publicKey === undefined) throw new GatewayError('InvalidInput', 'x-publickey: is required');
  requireBytes(publicKey, PUBLIC_KEY_BYTES, 'x-publickey');
  const proof = readProof(timestamp, signature);
  const appId = app === undefined ? null : parseId(app);
  if (appId === undefined) throw new GatewayError('InvalidInput', 'x-app-id: expected a decimal id');
  const unscoped = proof === undefined ? 'McpBasic' : 'McpVerified';
  return { publicKey, loginType: appId === null ? unscoped : 'McpApp', appId, proof };
}

function readProof(timestamp: string | undefined, signature: string | undefined): McpLoginRequest['proof'] {
  if (timestamp === undefined && signature === undefined) return undefined;
  if (timestamp === undefined || signature === undefined)
    throw new GatewayError('InvalidInput', 'x-timestamp and x-signature belong together');
  const unixSeconds = parseUnixSeconds(timestamp);
  if (unixSeconds === undefined) throw new GatewayError('InvalidInput', 'x-timestamp: expected Unix seconds');
  return { unixSeconds, signature: requireBytes(signature, SIGNATURE_BYTES, 'x-signature') };
}
