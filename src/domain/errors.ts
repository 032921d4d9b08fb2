/**
 * The error table: every failure that a caller may see, by its name in the code. Anything else that is thrown is a
 * bug and is answered as `InternalError` without its message. Numbers and messages are those of spec 7.2 to 7.4; the
 * others are Gatehouse's own.
 */
import type { ScopeCode } from './limits/quotas.ts';

interface ErrorRow {
  /** `error.code` of the REST envelope. */
  readonly code: number;
  /** HTTP status of a REST answer. */
  readonly status: number;
  readonly message: string;
  /** `error.code` of a JSON-RPC answer; -32000 (tool execution error) unless the row says otherwise. */
  readonly rpc?: number;
  /** `error` of an answer of the authorization server (RFC 6749 5.2 and its extensions). */
  readonly oauth?: string;
  /** Seconds for the `Retry-After` header, where waiting helps and the refusal does not bring its own figure. */
  readonly retryAfterSeconds?: number;
}

export const ERRORS = {
  InternalError: { code: 1000, status: 500, message: 'Internal error' },
  InvalidInput: { code: 1001, status: 400, message: 'Invalid input format', rpc: -32602 },
  AccessRateLimit: { code: 1002, status: 429, message: 'Access rate limit', rpc: 1002 },
  Overloaded: { code: 1003, status: 503, message: 'Overloaded', retryAfterSeconds: 1 },
  NotFound: { code: 1004, status: 404, message: 'Not found' },
  /** The message that an upload answers: unknown, or in a chat that is not the one of the upload. */
  LinkedMessageNotFound: { code: 1004, status: 404, message: 'Linked message not found' },
  MethodNotAllowed: { code: 1005, status: 405, message: 'Method not allowed' },
  BodyTooLarge: { code: 1006, status: 413, message: 'Body too large' },
  UnsupportedMediaType: { code: 1007, status: 415, message: 'Unsupported media type' },
  /** The same number for a compressed body, whose answer names the coding that is taken (RFC 9110 12.5.3). */
  UnsupportedContentCoding: { code: 1007, status: 415, message: 'Unsupported media type' },
  ModuleFailed: { code: 1008, status: 502, message: 'Module failed' },
  ModuleTimedOut: { code: 1009, status: 504, message: 'Module timed out' },
  ModuleUnavailable: { code: 1010, status: 503, message: 'Module unavailable', retryAfterSeconds: 10 },
  JournalUnavailable: { code: 1011, status: 503, message: 'Storage unavailable', retryAfterSeconds: 5 },
  Quarantined: { code: 1012, status: 503, message: 'Temporarily unavailable', retryAfterSeconds: 30 },
  StorageFull: { code: 1013, status: 503, message: 'Storage full', retryAfterSeconds: 60 },
  Stopping: { code: 1014, status: 503, message: 'Stopping', retryAfterSeconds: 5 },
  /** A backend's answer over the cap of 4 MiB. */
  ModuleAnswerTooLarge: { code: 1015, status: 502, message: 'Module answer too large' },
  /** The key was sent with another command before: its first answer would be wrong for this one. */
  IdempotencyKeyReused: { code: 1016, status: 422, message: 'Idempotency key reused' },
  /** The configuration file to reload has errors; the running configuration stays in force. */
  ConfigurationRefused: { code: 1017, status: 409, message: 'Configuration refused' },
  /** No `Retry-After`: waiting does not help, the configuration decides. */
  NotWithCluster: { code: 1018, status: 503, message: 'Not available with Cluster' },
  /** Less than 1 KiB/s over 10 s: an unfinished request holds what callers share. */
  BodyTooSlow: { code: 1019, status: 408, message: 'Request body too slow' },
  /** Errors of the authorization server: their names are those of RFC 6749, 7591 and 8707. */
  OAuthInvalidRequest: { code: 1020, status: 400, message: 'Invalid request', oauth: 'invalid_request' },
  OAuthInvalidClient: { code: 1021, status: 401, message: 'Invalid client', oauth: 'invalid_client' },
  OAuthInvalidGrant: { code: 1022, status: 400, message: 'Invalid grant', oauth: 'invalid_grant' },
  OAuthUnsupportedGrantType: {
    code: 1023,
    status: 400,
    message: 'Unsupported grant type',
    oauth: 'unsupported_grant_type',
  },
  OAuthUnsupportedResponseType: {
    code: 1024,
    status: 400,
    message: 'Unsupported response type',
    oauth: 'unsupported_response_type',
  },
  OAuthInvalidScope: { code: 1025, status: 400, message: 'Invalid scope', oauth: 'invalid_scope' },
  OAuthInvalidTarget: { code: 1026, status: 400, message: 'Invalid target', oauth: 'invalid_target' },
  OAuthInvalidRedirectUri: {
    code: 1027,
    status: 400,
    message: 'Invalid redirect URI',
    oauth: 'invalid_redirect_uri',
  },
  OAuthInvalidClientMetadata: {
    code: 1028,
    status: 400,
    message: 'Invalid client metadata',
    oauth: 'invalid_client_metadata',
  },
  OAuthRegistrationOff: { code: 1029, status: 403, message: 'Registration is off', oauth: 'access_denied' },
  OAuthConsentRequired: { code: 1030, status: 400, message: 'Consent required', oauth: 'consent_required' },
  /** A field of a proxied request (RFC 6585 5). The detail names it. */
  FieldTooLong: { code: 1031, status: 431, message: 'Header field too long' },
  /** The library drops trailers (docs/known-gaps.md), and a module would take what is left for the whole. */
  TrailersNotSupported: { code: 1032, status: 501, message: 'Trailers not supported' },
  /** A thread, or the disk that it waits for, stands still. What was begun is not undone: a repeat gets its result. */
  TaskTimedOut: { code: 1033, status: 503, message: 'Timed out', retryAfterSeconds: 5 },
  /** A request without a live token of the resource. */
  TokenRequired: { code: -32001, status: 401, message: 'Unauthorized', rpc: -32001 },
  /** A call that a wider scope of the same resource would open (RFC 6750 3.1). */
  InsufficientScope: { code: -32001, status: 403, message: 'Unauthorized', rpc: -32001 },
  SessionNotFound: { code: 1101, status: 401, message: 'Session not found', rpc: -32001 },
  AccountNotFound: { code: 1102, status: 401, message: 'Account not found', rpc: -32001 },
  AccessDenied: { code: 1103, status: 401, message: 'Access denied', rpc: -32001 },
  /** The same number as `AccessDenied`, for requests that logging in again would not help: origin, role, membership. */
  Forbidden: { code: 1103, status: 403, message: 'Access denied', rpc: -32001 },
  ChallengeExpired: { code: 1104, status: 401, message: 'Challenge expired', rpc: -32001 },
  InvalidSignature: { code: 1105, status: 401, message: 'Invalid signature', rpc: -32001 },
  KeyLimitReached: { code: 1106, status: 409, message: 'Key limit reached' },
  KeyAlreadyRegistered: { code: 1107, status: 409, message: 'Key already registered' },
  KeyNotFound: { code: 1108, status: 404, message: 'Key not found' },
  InvalidCode: { code: 1109, status: 401, message: 'Invalid code' },
  FreshLoginRequired: { code: 1110, status: 403, message: 'Fresh login required' },
  DeliveryUnavailable: { code: 1111, status: 503, message: 'Delivery unavailable', retryAfterSeconds: 60 },
  AppLimitReached: { code: 1112, status: 409, message: 'Application limit reached' },
  /** It has no address, was disabled by failures or by an admin: nothing can be sent. */
  WebhookDisabled: { code: 1113, status: 409, message: 'Webhook disabled' },
  /** Used, too late, or never issued: the answer does not say which. */
  SetupLinkOver: { code: 1114, status: 410, message: 'Set-up link is over' },
  MaxFileSize: { code: 1301, status: 413, message: 'Max file size' },
  /** The same number for a size of zero: no other size limit would help (design of the file transport). */
  EmptyFile: { code: 1301, status: 400, message: 'File is empty' },
  AlreadyDownload: { code: 1302, status: 409, message: 'Already download' },
  TooManyDownloads: { code: 1303, status: 503, message: 'Too many downloads', retryAfterSeconds: 5 },
  CRC32AlreadyUsed: { code: 1304, status: 409, message: 'CRC32 already used' },
  InvalidID: { code: 1305, status: 404, message: 'Invalid ID' },
  InvalidPart: { code: 1306, status: 400, message: 'Invalid part' },
  WrongPart: { code: 1307, status: 413, message: 'Wrong part' },
  /** The same number for less than was declared. */
  ShortPart: { code: 1307, status: 400, message: 'Wrong part' },
  ChecksumError: { code: 1308, status: 422, message: 'Checksum error' },
  InvalidFileName: { code: 1309, status: 400, message: 'Invalid file name' },
  ChartApiFileError: { code: 1310, status: 502, message: 'Chart API file error' },
  FileNotFound: { code: 1311, status: 404, message: 'File not found' },
  /** `If-Match` or `If-Unmodified-Since` does not hold (RFC 9110 13.1). */
  PreconditionFailed: { code: 1313, status: 412, message: 'Precondition failed' },
  /** Nothing of what `Range` asks for is in the file (RFC 9110 14). */
  RangeNotSatisfiable: { code: 1314, status: 416, message: 'Range not satisfiable' },
  /** The bytes cannot be read or written: a disk or a storage server fails. No room is `StorageFull`. */
  FileStorageFailed: { code: 1312, status: 503, message: 'File storage unavailable', retryAfterSeconds: 5 },
  /** Bytes for an offset that is not the next one, or a newer stream of the same draft has taken over. */
  UploadConflict: { code: 1315, status: 409, message: 'Upload conflict' },
  TooManyDrafts: { code: 1316, status: 409, message: 'Too many drafts' },
  /** JSON-RPC rows (spec 7.3): they leave as HTTP 200 unless the row says otherwise. */
  ParseError: { code: -32700, status: 400, message: 'Parse error', rpc: -32700 },
  InvalidRequest: { code: -32600, status: 200, message: 'Invalid request', rpc: -32600 },
  MethodNotFound: { code: -32601, status: 200, message: 'Method not found', rpc: -32601 },
  InvalidParams: { code: -32602, status: 200, message: 'Invalid params', rpc: -32602 },
  Unauthorized: { code: -32001, status: 200, message: 'Unauthorized', rpc: -32001 },
  ResourceNotFound: { code: -32002, status: 200, message: 'Resource not found', rpc: -32002 },
  ToolFailed: { code: -32000, status: 200, message: 'Tool execution error', rpc: -32000 },
  /** Codes of MCP 2026-07-28, which only its requests get. `InvalidRequestMeta` has the number of `InvalidParams`. */
  HeaderMismatch: { code: -32020, status: 400, message: 'Header mismatch', rpc: -32020 },
  UnsupportedRevision: { code: -32022, status: 400, message: 'Unsupported protocol version', rpc: -32022 },
  InvalidRequestMeta: { code: -32602, status: 400, message: 'Invalid params', rpc: -32602 },
} as const satisfies Record<string, ErrorRow>;

export type ErrorName = keyof typeof ERRORS;

export function errorRow(name: ErrorName): ErrorRow {
  return ERRORS[name];
}

/** JSON-RPC code of a row: its own, or -32000 (tool execution error). */
export function rpcCode(name: ErrorName): number {
  return errorRow(name).rpc ?? -32000;
}

/** An expected failure on its way to the caller. `detail` is public: it names the field or the reason, never a secret. */
export class GatewayError extends Error {
  readonly row: ErrorName;
  readonly detail: string | undefined;
  /** Overrides the row's `Retry-After`, in whole seconds. */
  readonly retryAfterSeconds: number | undefined;

  /** Of a limit: the scope that `X-RateLimit` names. Without it that is the user of the request, else its address. */
  readonly scope: ScopeCode | undefined;

  constructor(row: ErrorName, detail?: string, retryAfterSeconds?: number, scope?: ScopeCode) {
    // It goes to the caller, not to a log: without a stack trace a refusal costs half as much.
    const frames = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(ERRORS[row].message);
    Error.stackTraceLimit = frames;
    this.name = 'GatewayError';
    this.row = row;
    this.detail = detail;
    this.retryAfterSeconds = retryAfterSeconds ?? errorRow(row).retryAfterSeconds;
    this.scope = scope;
  }
}
