/**
 * Route definitions, the single source of an endpoint: the pipeline reads its checks, limits and authentication from it,
 * and OpenAPI describes it.
 */
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { AskedMethod } from '../../../domain/config/configuration.ts';
import type { ErrorName, GatewayError } from '../../../domain/errors.ts';
import type { Feature } from '../../../domain/features.ts';
import type { FormerNames } from '../../../domain/former-names.ts';
import type { Holder } from '../../../domain/limits/holders.ts';
import type { QuotaResult, ScopeCode } from '../../../domain/limits/quotas.ts';
import type { Role } from '../../../domain/roles.ts';
import type { Static, TSchema } from '../../../domain/schema.ts';
import type { SessionContext, SessionKind } from '../../../domain/sessions.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import type { Site } from '../../../domain/site.ts';
import type { TraceSpan } from '../../tracing/span.ts';
import type { PrebufferableBody } from '../body/incoming-body.ts';
import type { UpgradeContext } from '../listen/server.ts';
import type { RouteDocs } from '../openapi/route-docs.ts';

/**
 * The session that a route takes.
 * - `session`: the `sid` cookie, required. `optional`: the cookie, if there is one.
 * - `either`: a bearer if present, else the cookie, required. `eitherOptional`: the same, not required.
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
  /** Canonical address; trusted proxies are taken into account. '' when the peer is gone already. */
  readonly address: string;
  /** User agent of at most 256 characters, control characters removed. */
  readonly userAgent: string;
}

/** A live session that was found by its token. */
interface AuthenticatedSession {
  readonly session: SessionContext;
  /** Absent when the scope is off. */
  readonly quotaResult: QuotaResult | undefined;
}

/** Further conditions on a session. */
export interface SessionTerms {
  /** Path of the resource that the token must be issued for (RFC 8707); null or absent: a session that is bound to none. */
  readonly audience?: string | null;
  /** User id or proven contact of the account; a contact sync token opens nothing without it. */
  readonly username?: string;
}

/** Finds the session of a token. Synchronous: the owner is an actor in this process. */
export interface SessionLookup {
  /**
   * Checks that the token's session is live, records its use and charges the scope in one call. Undefined for an
   * unknown, expired or ended session, which is charged nothing.
   */
  authenticate(
    token: string,
    kind: SessionKind,
    charge: { scope: ScopeCode; cost: number } | undefined,
    client: ClientInfo,
    terms?: SessionTerms,
  ): AuthenticatedSession | undefined;
}

/** Limits that a route charges itself. Each call records its quota for the `X-RateLimit` header. */
export interface RequestLimiter {
  /** A trusted proxy named the client, so the connection scope is not charged. */
  readonly forwarded: boolean;
  /** Connection, then address (spec 8.1 rule 1). Throws `AccessRateLimit`. */
  chargeAnonymous(cost: number): void;
  /** An unproven public key in base64url (spec 8.1). Throws `AccessRateLimit`. */
  chargeKey(scope: 'p' | 'm', publicKey: string, cost: number): void;
  /**
   * The same for a login with a signature of the key. If callers of other networks have spent the key's quota
   * (`crowded`), a valid login is served and every refusal becomes `AccessRateLimit` (docs/decisions/0105).
   */
  chargeProvableKey<T>(
    scope: 'p' | 'm',
    publicKey: string,
    login: (crowded: boolean) => Promise<T>,
  ): Promise<T>;
  /** Counts a new account of the caller's networks today. Throws `AccessRateLimit`; call the result if none was created. */
  chargeSignUp(): () => void;
  /** Records the quota result of a session. Throws `AccessRateLimit` if it refuses. */
  noteSession(quotaResult: QuotaResult | undefined): void;
  /** Records the result of a limit outside the scopes, named by `detail`. Throws as above. */
  noteOwn(quotaResult: QuotaResult, detail: string): void;
  /** Use of a capability code, by its hash: counted as an unproven key, shown as `i`. Throws `AccessRateLimit`. */
  chargeCode(hash: string): void;
  /** Shows the scope of an `AccessRateLimit` in `X-RateLimit` (docs/decisions/0105); ignores other errors. */
  noteRefusal(error: GatewayError, holder: Holder): void;
  /** A failed login with an unknown key from this address. Throws `AccessRateLimit` over the budget. */
  chargeUnknownKey(): void;
  /** Throws `AccessRateLimit` while the budget is spent. Call it before a key lookup; `chargeKey('m', …)` does itself. */
  checkUnknownKeys(): void;
}

export interface RouteContext<Query = unknown, Body = unknown, Session = SessionContext | undefined> {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The body's bytes if the route's `body` is `raw`; empty otherwise. */
  readonly rawBody: Buffer;
  /** The body as it arrives, if the route's `body` is `stream` and there is one. */
  readonly incoming: PrebufferableBody | undefined;
  /** Undecoded query with its `?`; '' for a target without one. */
  readonly search: string;
  readonly rawPath: string;
  readonly method: string;
  /** With one the answer may be an `UpgradeReply`: GET with a `Sec-WebSocket-Key` of the right length. */
  readonly upgradeContext: UpgradeContext | undefined;
  readonly session: Session;
  readonly client: ClientInfo;
  /** True on a path of contact sync: a 401 names the scheme of devices, which no browser sees. */
  readonly asksForBasic: boolean;
  /** The peer is a trusted proxy that sends files itself when the answer names one (`SendfileBehind`). */
  readonly proxySendsFiles: boolean;
  /** Lower-case name. A repeated header reads as undefined and is listed in `repeatedHeaders`. */
  header(name: string): string | undefined;
  readonly repeatedHeaders: ReadonlySet<string>;
  /** Every field with a lower-case name; repeated ones are joined with commas (RFC 9110 5.3). */
  allHeaders(): Iterable<readonly [name: string, value: string]>;
  readonly requestId: string;
  /** `X-Request-Id` of the caller, if well formed: log and audit show it beside the gateway's own. */
  readonly clientRequestId: string | undefined;
  /** W3C trace context as received, if well formed; pass it to modules. */
  readonly traceparent: string | undefined;
  /** The parent of what the route does; undefined unless the request is sampled for a trace. */
  readonly span: TraceSpan | undefined;
  readonly nowMs: number;
  readonly idempotencyKey: string | undefined;
  readonly limiter: RequestLimiter;
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly site: Site;
  /** The caller for shared bounds: what a route takes of a bound is counted for this holder. */
  readonly holder: Holder;
  /** A route that finds the session itself (/mcp) sets it here for the shared bounds. Throws the error of a bound. */
  identify(session: SessionContext): void;
  /** Work that may be long begins for this request: the watchdog of the event loop names its route, and this tool. */
  noteWork(tool?: string): void;
  /** Called once when the client leaves before the answer. */
  onAbort(listener: () => void): void;
}

export type HeaderList = readonly (readonly [name: string, value: string])[];

/** An answer other than `{"result": value}` with status 200. */
export class Reply {
  readonly status: number;
  readonly headers: HeaderList;
  /** Null: no body, `Content-Length: 0`. */
  readonly body: string | Uint8Array | null;
  readonly contentType: string | undefined;
  /** Length of the body of GET, for an answer to HEAD from elsewhere; undefined if unknown. */
  readonly headLengthBytes: number | undefined;
  /** The answer to HEAD comes from elsewhere; otherwise its length is that of `body`. */
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

  /** The success envelope with further headers, for example a cookie. */
  static result(value: unknown, headers: HeaderList = []): Reply {
    return new Reply(200, JSON.stringify({ result: value }), 'application/json', headers);
  }

  /** JSON without the envelope. */
  static json(status: number, value: unknown, headers: HeaderList = [], error?: ErrorName): Reply {
    return new Reply(status, JSON.stringify(value), 'application/json', headers, undefined, error);
  }

  /** No body. */
  static empty(status = 200, headers: HeaderList = []): Reply {
    return new Reply(status, null, undefined, headers);
  }

  /** The same answer as the report of a failure. */
  withError(error: ErrorName, headers: HeaderList = this.headers): Reply {
    const head = this.isHead ? { lengthBytes: this.headLengthBytes } : undefined;
    return new Reply(this.status, this.body, this.contentType, headers, head, error);
  }
}

/** An answer whose bytes the proxy in front sends: it names the file, and its length counts as sent. */
export class HandedOverReply extends Reply {
  readonly lengthBytes: number;

  constructor(status: number, contentType: string, headers: HeaderList, lengthBytes: number) {
    super(status, null, contentType, headers);
    this.lengthBytes = lengthBytes;
  }
}

/** An error as an interface writes it; undefined: as the error envelope (spec 7.1). */
export type FailureForm = (error: GatewayError, context: RouteContext) => Reply | undefined;

interface RouteDefinition<
  Q extends TSchema = TSchema,
  B extends TSchema = TSchema,
  A extends AuthRule = AuthRule,
> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | AskedMethod;
  /** The route has every method of its path; the API description shows `method`. */
  readonly everyMethod?: true;
  /** `:name` marks a parameter. */
  readonly path: string;
  /** People type the address: with a slash at its end it is the same. */
  readonly slashToo?: true;
  /** One line for the explorer. */
  readonly summary: string;
  /** Section of docs/specification.md that says more. */
  readonly spec?: string;
  readonly group: string;
  /** Feature that the route belongs to; a gateway that does not offer it answers `NotWithCluster`. */
  readonly feature?: Feature;
  /** Rules and details beyond the summary. Tests require it of every route that is served. */
  readonly description?: string;
  readonly docs?: RouteDocs;
  readonly auth: A;
  /** With `admin`: the least role; by default `viewer` for GET, `admin` for the rest. */
  readonly role?: Role;
  /** With `optional`: a `sid` of no live session is refused and cleared, so that a repeat has none. */
  readonly strictSession?: true;
  /** Pages of every origin may call it and read the answer, without cookies: no cookie is read, no origin is checked. */
  readonly anyOrigin?: true;
  /** Foreign pages may not read it: `Origin` and `Sec-Fetch-Site` are checked although the method is safe. */
  readonly ownPagesOnly?: true;
  /** Departures from the rule that connection, address and session are charged. */
  readonly limits?: readonly LimitRule[];
  readonly query?: Q;
  /**
   * A schema: a JSON body is required and checked. `raw`: the bytes. `stream`: the handler is called after the head and
   * reads `context.incoming`. Absent: a body is ignored.
   */
  readonly body?: B | 'raw' | 'stream';
  /** The body may be absent: it is then checked as `{}`. */
  readonly bodyOptional?: true;
  /** Cap of the body in bytes; 64 KiB by default, none for `stream`. */
  readonly bodyMaxBytes?: number;
  /** With `stream`: the route itself bounds slow bodies (uploads); others need at least 1 KiB/s. */
  readonly ownMinimumRate?: true;
  /** Schema of `result`, for OpenAPI; absent if the route answers without the envelope. */
  readonly result?: TSchema;
  /** The answer is bytes without the envelope: the meaning of each status for OpenAPI, which then describes HEAD too. */
  readonly bytes?: Readonly<Record<number, string>>;
  /**
   * Errors besides those that the definition implies (openapi/answers.ts). Tests fail where the route answers another
   * one.
   */
  readonly errors?: readonly ErrorName[];
  /** The route answers 405 itself: `Allow` and preflights of its path omit its method. */
  readonly notOffered?: true;
  /** A file of the pages: the API description omits it. */
  readonly isFile?: true;
  /** Served only to the addresses of `Admin.allow`, as routes with `auth: 'admin'` are. */
  readonly adminAddresses?: true;
  /** The last parameter may be a secret (a file's code): the log shows its name instead. */
  readonly secretPath?: true;
  /** Fields of the answer to OPTIONS on this path, preflights included. */
  offers?(settings: SettingsReader): HeaderList;
  /** Undecoded paths that the route serves; its last parameter is all the rest, and `params` stays empty (proxy). */
  serves?(rawPath: string): boolean;
  /** True for paths among those of `serves` that have this method too. Absent: all. Not in the API description. */
  asksFor?(rawPath: string): boolean;
  /** Undecoded paths on which a session that `either` requires may be missing. */
  isPublic?(rawPath: string): boolean;
  /** Undecoded paths on which a contact sync token counts (`Authorization: Basic`). */
  takesBasic?(rawPath: string): boolean;
  /** With `eitherOptional`: parameters with which a bearer of no live session is ignored (spec 4.7 rule 3). */
  ignoresStaleBearer?(params: Readonly<Record<string, string>>): boolean;
  /** Former names of fields in query and body; both names are read. */
  readonly formerNames?: FormerNames;
  /** A repeated `Idempotency-Key` returns the first reply again. */
  readonly idempotent?: true;
  /** The form of errors, the pipeline's included, if it is not the REST envelope (/mcp); `failure` adds the rest. */
  readonly refusal?: FailureForm;
  /** Returns the value of `result`, a `Reply`, or a promise of either. Throws `GatewayError` for expected failures. */
  handle(
    context: RouteContext<
      Static<Q>,
      Static<B>,
      A extends 'session' | 'either' | 'admin' ? SessionContext : SessionContext | undefined
    >,
  ): unknown;
}

/** A definition without its type parameters, as the pipeline holds it. */
export type AnyRoute = RouteDefinition<TSchema, TSchema, AuthRule>;

/** Checks and infers the types of a definition. */
export function defineRoute<Q extends TSchema, B extends TSchema, A extends AuthRule>(
  route: RouteDefinition<Q, B, A>,
): AnyRoute {
  return route as unknown as AnyRoute;
}

/** A route of the admin JSON, for sessions of admins from the addresses of `Admin.allow`. */
export function adminRoute<Q extends TSchema, B extends TSchema>(
  route: Omit<RouteDefinition<Q, B, 'admin'>, 'group' | 'auth'>,
): AnyRoute {
  return defineRoute<Q, B, 'admin'>({ ...route, group: 'admin', auth: 'admin' });
}
