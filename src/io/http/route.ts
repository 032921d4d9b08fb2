/**
 * Route definitions. One definition is all there is to a REST endpoint: the pipeline takes its checks, limits and
 * authentication from it, OpenAPI prints it, the spec trace counts it.
 */
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { ErrorName, GatewayError } from '../../domain/errors.ts';
import type { FormerNames } from '../../domain/former-names.ts';
import type { Holder } from '../../domain/limits/holders.ts';
import type { QuotaResult, ScopeCode } from '../../domain/limits/quotas.ts';
import type { Role } from '../../domain/roles.ts';
import type { Static, TSchema } from '../../domain/schema.ts';
import type { SessionContext, SessionKind } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import type { Site } from '../../domain/site.ts';
import type { PrebufferableBody } from './body/incoming-body.ts';
import type { RouteDocs } from './openapi/route-docs.ts';

/**
 * Which session a route takes (auth.md A7).
 * - `session`: the `sid` cookie, required. `optional`: the cookie, used where there is one.
 * - `either`: a bearer if one is present, else the cookie, required. `eitherOptional`: the same, not required.
 * - `admin`: the cookie of an admin's session. `none`: neither cookie nor bearer is read (mcp_login, /mcp, health).
 */
type AuthRule = 'session' | 'optional' | 'either' | 'eitherOptional' | 'admin' | 'none';

/**
 * - `NoRateLimit`: not counted. With `auth: session` a request without a valid session is still charged to
 *   connection and address.
 * - `CheckPubKey`: adds the public-key scope for the header `pkey`.
 * - `Self`: the route charges by itself through `context.limiter` (mcp_login, /mcp).
 */
type LimitRule = 'NoRateLimit' | 'CheckPubKey' | 'Self';

export interface ClientInfo {
  /** Address in canonical text; trusted proxies taken into account. '' when the peer is gone already. */
  readonly address: string;
  /** At most 256 characters, control characters removed. */
  readonly userAgent: string;
}

/** What the lookup of a live session returns. */
interface AuthenticatedSession {
  readonly session: SessionContext;
  /** Absent when the scope is off. */
  readonly quotaResult: QuotaResult | undefined;
}

/** The way from a token to its session. Synchronous: the owner is an actor in this process. */
export interface SessionLookup {
  /**
   * Looks the token up, checks that its session lives, notes that it was seen and charges the scope, all at once.
   * Undefined for an unknown, expired or ended session, which is charged nothing.
   */
  authenticate(
    token: string,
    kind: SessionKind,
    charge: { scope: ScopeCode; cost: number } | undefined,
    client: ClientInfo,
  ): AuthenticatedSession | undefined;
}

/** Limits that a route charges by itself. Each call notes its verdict for the `X-RateLimit` header of the answer. */
export interface RequestLimiter {
  /** A trusted proxy named the client, so the connection scope does not count. */
  readonly forwarded: boolean;
  /** Connection, then address (spec 8.1 rule 1). Throws `AccessRateLimit`. */
  chargeAnonymous(cost: number): void;
  /** An unproven public key, keyed by its decoded bytes in base64url (events.md). Throws `AccessRateLimit`. */
  chargeKey(scope: 'p' | 'm', publicKey: string, cost: number): void;
  /**
   * The same for a login that brings a signature of the key. Where callers of other networks have used the key up
   * (`crowded`), a login that succeeds is served, and every refusal becomes the limit's. Rejects with `AccessRateLimit`.
   */
  chargeProvableKey<T>(
    scope: 'p' | 'm',
    publicKey: string,
    login: (crowded: boolean) => Promise<T>,
  ): Promise<T>;
  /** One account more of the caller's networks today. Throws `AccessRateLimit`; call the result if none was created. */
  chargeSignUp(): () => void;
  /** Notes what a user actor decided for a session. Throws `AccessRateLimit` when it is a refusal. */
  noteSession(quotaResult: QuotaResult | undefined): void;
  /** Notes the verdict of a limit outside the scopes, which `detail` names. Throws as above. */
  noteOwn(quotaResult: QuotaResult, detail: string): void;
  /** Each use of a capability code, by its hash: counted as an unproven key is, shown as `i`. Throws `AccessRateLimit`. */
  chargeCode(hash: string): void;
  /** `X-RateLimit` shows the scope of this refusal (docs/decisions/0119); of other rows nothing. */
  noteRefusal(error: GatewayError, holder: Holder): void;
  /** One failed login with an unknown key from this address (auth.md A12). Throws `AccessRateLimit` over the budget. */
  chargeUnknownKey(): void;
  /** Throws `AccessRateLimit` while it is spent. Ask before a key is looked up; `chargeKey('m', …)` asks by itself. */
  checkUnknownKeys(): void;
}

export interface RouteContext<Query = unknown, Body = unknown, Session = SessionContext | undefined> {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The body's bytes, where the route's `body` is `raw`; empty otherwise. */
  readonly rawBody: Buffer;
  /** The body as it arrives, where the route's `body` is `stream` and there is one. */
  readonly incoming: PrebufferableBody | undefined;
  /** Query (without `?`) and path as sent, undecoded. */
  readonly rawQuery: string;
  readonly rawPath: string;
  readonly method: string;
  readonly session: Session;
  readonly client: ClientInfo;
  /** Lower-case name. A header that was sent twice reads as undefined and is listed in `repeatedHeaders`. */
  header(name: string): string | undefined;
  readonly repeatedHeaders: ReadonlySet<string>;
  /** Every field with a lower-case name; one that was sent several times is joined with commas (RFC 9110 5.3). */
  allHeaders(): Iterable<readonly [name: string, value: string]>;
  readonly requestId: string;
  /** `X-Request-Id` of the caller, where it is well formed: in log and audit it stands beside the gateway's own. */
  readonly clientRequestId: string | undefined;
  /** W3C trace context as it came in, where it is well formed; pass it on to modules. */
  readonly traceparent: string | undefined;
  readonly nowMs: number;
  readonly idempotencyKey: string | undefined;
  readonly limiter: RequestLimiter;
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly site: Site;
  /** The caller as shared bounds see it: what a route takes of one is taken for this holder. */
  readonly holder: Holder;
  /** A route that finds the session by itself (/mcp) names it here, so that bounds count for its user. Throws the row of a bound. */
  identify(session: SessionContext): void;
  /** Called once when the client leaves before the answer. */
  onAbort(listener: () => void): void;
}

export type HeaderList = readonly (readonly [name: string, value: string])[];

/** An answer that is more than `{"result": value}` with status 200. */
export class Reply {
  readonly status: number;
  readonly headers: HeaderList;
  /** Null: no body at all, `Content-Length: 0`. */
  readonly body: string | Uint8Array | null;
  readonly contentType: string | undefined;
  /** Of an answer to HEAD that was made elsewhere: the bytes that GET would have, undefined where that is unknown. */
  readonly headLengthBytes: number | undefined;
  /** The answer to HEAD came from elsewhere; otherwise its length is that of `body`. */
  readonly isHead: boolean;
  /** The failure that this answer reports, in whatever form; log and metrics read it here. */
  readonly error: ErrorName | undefined;

  constructor(
    status: number,
    body: string | Uint8Array | null,
    contentType?: string,
    headers: HeaderList = [],
    head?: { readonly lengthBytes: number | undefined },
    error?: ErrorName,
  ) {
    this.status = status;
    this.body = body;
    this.contentType = contentType;
    this.headers = headers;
    this.isHead = head !== undefined;
    this.headLengthBytes = head?.lengthBytes;
    this.error = error;
  }

  /** The success envelope with further headers, a cookie for example. */
  static result(value: unknown, headers: HeaderList = []): Reply {
    return new Reply(200, JSON.stringify({ result: value }), 'application/json', headers);
  }

  /** JSON without the envelope. */
  static json(status: number, value: unknown, headers: HeaderList = [], error?: ErrorName): Reply {
    return new Reply(status, JSON.stringify(value), 'application/json', headers, undefined, error);
  }

  /** Zero bytes. */
  static empty(status = 200, headers: HeaderList = []): Reply {
    return new Reply(status, null, undefined, headers);
  }

  /** The same answer as the report of a failure. */
  withError(error: ErrorName): Reply {
    const head = this.isHead ? { lengthBytes: this.headLengthBytes } : undefined;
    return new Reply(this.status, this.body, this.contentType, this.headers, head, error);
  }
}

interface RouteDefinition<
  Q extends TSchema = TSchema,
  B extends TSchema = TSchema,
  A extends AuthRule = AuthRule,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS';
  /** `:name` marks a parameter. */
  readonly path: string;
  /** One line for the explorer. */
  readonly summary: string;
  readonly group: string;
  /** What the description of the API says beside all of this (openapi.ts). Tests ask it of every route that is served. */
  readonly docs?: RouteDocs;
  readonly auth: A;
  /** With `admin`: the least role. `viewer` for GET, `admin` for the rest unless given. */
  readonly role?: Role;
  /** With `optional`: a `sid` that names no live session is refused and taken back, so that a repeat goes without. */
  readonly strictSession?: true;
  /** Foreign pages may not read it either: `Origin` and `Sec-Fetch-Site` are judged though the method is safe (A8). */
  readonly ownPagesOnly?: true;
  readonly limits: readonly LimitRule[];
  readonly query?: Q;
  /**
   * A schema: a JSON body is required and checked. `raw`: the bytes, unread by the pipeline. `stream`: the handler is
   * called on the head alone and reads `context.incoming`. Absent: a body is ignored.
   */
  readonly body?: B | 'raw' | 'stream';
  /** A body that may be left out: an absent one is checked as `{}`. */
  readonly bodyOptional?: true;
  /** Cap of the body in bytes; 64 KiB unless given, none for `stream`. */
  readonly bodyMaxBytes?: number;
  /** With `stream`: the route bounds slow bodies by itself (uploads); others send 1 KiB/s at least. */
  readonly ownMinimumRate?: true;
  /** Schema of `result`, for OpenAPI; absent where the route answers without the envelope. */
  readonly result?: TSchema;
  /** The answer is bytes without the envelope: what each status of it means, for OpenAPI, which then names HEAD too. */
  readonly bytes?: Readonly<Record<number, string>>;
  readonly errors: readonly ErrorName[];
  /** The route answers 405 itself: `Allow` and preflights of its path leave its method out. */
  readonly notOffered?: true;
  /** A file of the pages: no part of the API, so its description leaves it out. */
  readonly isFile?: true;
  /** Served to the addresses of `Admin.allow` alone, as routes with `auth: 'admin'` are. */
  readonly adminAddresses?: true;
  /** The last parameter may be a secret (a file's code): the log shows its name in its place. */
  readonly secretPath?: true;
  /** Fields of the answer to OPTIONS on this path, preflights included. */
  offers?(settings: SettingsReader): HeaderList;
  /** Undecoded paths that the route serves; its last parameter is then all the rest, and `params` stays empty (proxy). */
  serves?(rawPath: string): boolean;
  /** Undecoded paths on which a session that `either` requires may be missing. */
  isPublic?(rawPath: string): boolean;
  /** With `eitherOptional`: parameters with which a bearer that names no live session counts as none (spec 4.7 rule 3). */
  ignoresStaleBearer?(params: Readonly<Record<string, string>>): boolean;
  /** Fields of query and body that had another name; both names are read. */
  readonly formerNames?: FormerNames;
  /** State changes where a repeated `Idempotency-Key` gives the first reply again. */
  readonly idempotent?: true;
  /** The form of refusals, the pipeline's own included, where it is not the REST envelope (/mcp). Undefined: the envelope. */
  refusal?(error: GatewayError, context: RouteContext): Reply | undefined;
  /** Returns the value of `result`, or a `Reply`, or a promise of one. Throws `GatewayError` for rows of the table. */
  handle(
    context: RouteContext<
      Static<Q>,
      Static<B>,
      A extends 'session' | 'either' | 'admin' ? SessionContext : SessionContext | undefined
    >,
  ): unknown;
}

/** A definition with its types forgotten, as the engine holds it. */
export type AnyRoute = RouteDefinition<TSchema, TSchema, AuthRule>;

/** Types a definition where it stands. */
export function defineRoute<Q extends TSchema, B extends TSchema, A extends AuthRule>(
  route: RouteDefinition<Q, B, A>,
): AnyRoute {
  return route as unknown as AnyRoute;
}
