/**
 * The error table: every failure that a caller may see, by its name in the code. Numbers and messages are those of
 * spec 7.2 to 7.4; the others are Gatehouse's own.
 */
/** Condition of an error by section of the specification. Text alone: 7.1; without 7.1 that table names the others. */
type Condition =
  | string
  | { readonly '7.1'?: string; readonly '7.2'?: string; readonly '7.3'?: string; readonly '7.4'?: string };

export interface ErrorRow {
  /** `error.code` of the REST envelope. */
  readonly code: number;
  /** HTTP status of a REST answer. */
  readonly status: number;
  readonly message: string;
  /** Cells of docs/specification.md, which are printed from it. */
  readonly spec: Condition;
  /** `error.code` of a JSON-RPC answer; -32000 (tool execution error) unless the row says otherwise. */
  readonly rpc?: number;
  /** `error` of an answer of the authorization server (RFC 6749 5.2 and its extensions). */
  readonly oauth?: string;
  /** Seconds for the `Retry-After` header, where waiting helps and the refusal does not bring its own figure. */
  readonly retryAfterSeconds?: number;
}

const error = (
  code: number,
  status: number,
  message: string,
  spec: Condition,
  more: Omit<ErrorRow, 'code' | 'status' | 'message' | 'spec'> = {},
): ErrorRow => ({ code, status, message, spec, ...more });

export const ERRORS = {
  InternalError: error(1000, 500, 'Internal error', 'A bug; the operator sees it in the log'),
  InvalidInput: error(
    1001,
    400,
    'Invalid input format',
    {
      '7.1': 'A field, header or body cannot be read',
      '7.2': 'Key, signature, timestamp or application id cannot be read',
    },
    { rpc: -32602 },
  ),
  AccessRateLimit: error(
    1002,
    429,
    'Access rate limit',
    {
      '7.1': 'A rate quota or a share is used up',
      '7.2': 'The quota of the key is used up',
      '7.4': 'A rate quota is used up (HTTP 429)',
    },
    { rpc: 1002, retryAfterSeconds: 1 },
  ),
  Overloaded: error(1003, 503, 'Overloaded', 'A bound of the gateway is full', { retryAfterSeconds: 1 }),
  NotFound: error(
    1004,
    404,
    'Not found',
    'No such path or record; a page if a browser asks outside the APIs',
  ),
  /** The message that an upload answers: unknown, or in a chat that is not the one of the upload. */
  LinkedMessageNotFound: error(
    1004,
    404,
    'Linked message not found',
    'The message that an upload answers is not in its chat',
  ),
  MethodNotAllowed: error(1005, 405, 'Method not allowed', 'With `Allow`'),
  BodyTooLarge: error(1006, 413, 'Body too large', 'Refused before it is read'),
  UnsupportedMediaType: error(
    1007,
    415,
    'Unsupported media type',
    'JSON is expected; or an upload is a form',
  ),
  /** The same number for a compressed body, whose answer names the coding that is taken (RFC 9110 12.5.3). */
  UnsupportedContentCoding: error(
    1007,
    415,
    'Unsupported media type',
    'A compressed body; `Accept-Encoding: identity`',
  ),
  ModuleFailed: error(1008, 502, 'Module failed', 'The module is down, cut off, or answers no HTTP'),
  ModuleTimedOut: error(1009, 504, 'Module timed out', 'The module is silent past the deadline'),
  ModuleUnavailable: error(
    1010,
    503,
    'Module unavailable',
    'The breaker is open, or the module is not configured',
    { retryAfterSeconds: 10 },
  ),
  JournalUnavailable: error(1011, 503, 'Storage unavailable', 'A commit failed; nothing was acknowledged', {
    retryAfterSeconds: 5,
  }),
  Quarantined: error(1012, 503, 'Temporarily unavailable', 'The actor failed more than 5 times in 60 s', {
    retryAfterSeconds: 30,
  }),
  StorageFull: error(
    1013,
    503,
    'Storage full',
    'Journal or file storage is full; what frees space still works',
    { retryAfterSeconds: 60 },
  ),
  Stopping: error(1014, 503, 'Stopping', 'The process stops', { retryAfterSeconds: 5 }),
  /** A backend's answer over the cap of 4 MiB. */
  ModuleAnswerTooLarge: error(1015, 502, 'Module answer too large', 'Above 4 MiB'),
  /** The key was sent with another command before: its first answer would be wrong for this one. */
  IdempotencyKeyReused: error(
    1016,
    422,
    'Idempotency key reused',
    'The key came with another command before',
  ),
  /** The configuration file to reload has errors; the running configuration stays in force. */
  ConfigurationRefused: error(1017, 409, 'Configuration refused', 'The file to reload has faults, all named'),
  /** No `Retry-After`: waiting does not help, the configuration decides. */
  NotWithCluster: error(
    1018,
    503,
    'Not available with Cluster',
    'Events, streams and webhooks of a cluster while a member cannot apply events',
  ),
  /** Less than 1 KiB/s over 10 s: an unfinished request holds what callers share. */
  BodyTooSlow: error(1019, 408, 'Request body too slow', 'Less than 1 KiB/s over 10 s; the connection ends'),
  /** Errors of the authorization server: their names are those of RFC 6749, 7591 and 8707. */
  OAuthInvalidRequest: error(1020, 400, 'Invalid request', '`invalid_request` at `/connect`', {
    oauth: 'invalid_request',
  }),
  OAuthInvalidClient: error(1021, 401, 'Invalid client', '`invalid_client`', { oauth: 'invalid_client' }),
  OAuthInvalidGrant: error(
    1022,
    400,
    'Invalid grant',
    '`invalid_grant`: a code or refresh token that is over',
    { oauth: 'invalid_grant' },
  ),
  OAuthUnsupportedGrantType: error(1023, 400, 'Unsupported grant type', '`unsupported_grant_type`', {
    oauth: 'unsupported_grant_type',
  }),
  OAuthUnsupportedResponseType: error(1024, 400, 'Unsupported response type', '`unsupported_response_type`', {
    oauth: 'unsupported_response_type',
  }),
  OAuthInvalidScope: error(1025, 400, 'Invalid scope', '`invalid_scope`', { oauth: 'invalid_scope' }),
  OAuthInvalidTarget: error(1026, 400, 'Invalid target', '`invalid_target`', { oauth: 'invalid_target' }),
  OAuthInvalidRedirectUri: error(1027, 400, 'Invalid redirect URI', '`invalid_redirect_uri`', {
    oauth: 'invalid_redirect_uri',
  }),
  OAuthInvalidClientMetadata: error(1028, 400, 'Invalid client metadata', '`invalid_client_metadata`', {
    oauth: 'invalid_client_metadata',
  }),
  OAuthRegistrationOff: error(
    1029,
    403,
    'Registration is off',
    '`access_denied`; `OAuthClients` takes no registrations',
    { oauth: 'access_denied' },
  ),
  OAuthConsentRequired: error(1030, 400, 'Consent required', '`consent_required`: `prompt=none` is refused', {
    oauth: 'consent_required',
  }),
  /** A field of a proxied request (RFC 6585 5). The detail names it. */
  FieldTooLong: error(
    1031,
    431,
    'Header field too long',
    'A field of a proxied call above 8 KiB; the detail names it',
  ),
  /** The library drops trailers (docs/known-gaps.md), and a module would take what is left for the whole. */
  TrailersNotSupported: error(1032, 501, 'Trailers not supported', 'A proxied call with `Trailer`'),
  /** A thread, or the disk that it waits for, stands still. What was begun is not undone: a repeat gets its result. */
  TaskTimedOut: error(
    1033,
    503,
    'Timed out',
    'A worker thread or the disk stands still; what was begun is not undone, and a repeat gets its result',
    { retryAfterSeconds: 5 },
  ),
  /** RFC 6455 4.4. */
  UpgradeRequired: error(1034, 426, 'Upgrade required', 'A WebSocket handshake of another version than 13'),
  /** The detail says where the person connects the server. */
  UpstreamLoginRequired: error(
    1035,
    403,
    'Login at the server required',
    'A call of another MCP server that needs credentials of the person, and has none that it takes',
  ),
  /** Its bytes would be missing at the other nodes. */
  FolderNotShared: error(
    1036,
    503,
    'Folder not shared',
    'Files at a node of a cluster that has not found the folder of the other nodes, `detail`: `files`',
    { retryAfterSeconds: 5 },
  ),
  SessionNotFound: error(
    1101,
    401,
    'Session not found',
    {
      '7.1': 'No session, or the key is unknown (7.2)',
      '7.2': 'No eligible user key equals the public key',
      '7.4': 'A session is needed, and none is valid',
    },
    { rpc: -32001 },
  ),
  AccountNotFound: error(
    1102,
    401,
    'Account not found',
    { '7.2': 'The account of the key does not exist' },
    { rpc: -32001 },
  ),
  AccessDenied: error(
    1103,
    401,
    'Access denied',
    {
      '7.2':
        'The key has no `McpAccess`, the user is blocked, the application is not approved, or the key is not authorized for it',
    },
    { rpc: -32001 },
  ),
  /** The same number as `AccessDenied`, for requests that logging in again would not help: origin, role, membership. */
  Forbidden: error(1103, 403, 'Access denied', 'Foreign origin, missing role or membership, address', {
    rpc: -32001,
  }),
  ChallengeExpired: error(
    1104,
    401,
    'Challenge expired',
    {
      '7.1': 'A challenge was used, is expired or foreign; or 7.2',
      '7.2': 'The timestamp is more than 5 minutes off',
    },
    { rpc: -32001 },
  ),
  InvalidSignature: error(
    1105,
    401,
    'Invalid signature',
    {
      '7.1': 'A signature or ceremony does not verify',
      '7.2': '`X-PublicKey` does not verify the signature',
    },
    { rpc: -32001 },
  ),
  KeyLimitReached: error(1106, 409, 'Key limit reached', '`ActiveKeysLimit`'),
  KeyAlreadyRegistered: error(1107, 409, 'Key already registered', 'Another active record holds the key'),
  KeyNotFound: error(1108, 404, 'Key not found', 'Unknown, removed or foreign key'),
  InvalidCode: error(1109, 401, 'Invalid code', 'A one-time code is wrong'),
  FreshLoginRequired: error(1110, 403, 'Fresh login required', 'The login is too old for the change'),
  DeliveryUnavailable: error(1111, 503, 'Delivery unavailable', 'No module delivers the code', {
    retryAfterSeconds: 60,
  }),
  AppLimitReached: error(1112, 409, 'Application limit reached', '20 applications'),
  /** It has no address, was disabled by failures or by an admin: nothing can be sent. */
  WebhookDisabled: error(1113, 409, 'Webhook disabled', 'No address, or disabled'),
  ContactSyncLimitReached: error(1115, 409, 'Contact sync limit reached', '8 contact sync tokens of the key'),
  /** No `Retry-After`: the configuration decides. */
  ContactSyncUnavailable: error(1116, 503, 'Contact sync unavailable', 'No module has `contactSync`'),
  /** Used, too late, or never issued: the answer does not say which. */
  SetupLinkOver: error(1114, 410, 'Set-up link is over', 'Used, late, or never given'),
  /** Told to the caller who proved to have the contact, and to no other. */
  ContactRegistered: error(1117, 409, 'Contact already registered', 'Another account has the contact'),
  ContactLimitReached: error(1118, 409, 'Contact limit reached', '5 contacts of the account'),
  LastAdmin: error(1119, 409, 'Last admin', 'The account of the last admin cannot be removed'),
  MaxFileSize: error(1301, 413, 'Max file size', { '7.4': 'The file is empty or above the limit of 20 MB' }),
  /** The same number for a size of zero: no other size limit would help (design of the file transport). */
  EmptyFile: error(1301, 400, 'File is empty', 'Size zero'),
  AlreadyDownload: error(1302, 409, 'Already download', { '7.4': 'The user has an active v1 upload' }),
  TooManyDownloads: error(
    1303,
    503,
    'Too many downloads',
    { '7.4': 'The server has 60 active v1 uploads' },
    { retryAfterSeconds: 5 },
  ),
  CRC32AlreadyUsed: error(1304, 409, 'CRC32 already used', {
    '7.4': 'An active v1 upload has the declared CRC-32',
  }),
  InvalidID: error(1305, 404, 'Invalid ID', {
    '7.1': '7.4; drafts too',
    '7.4': 'No active upload has the id',
  }),
  InvalidPart: error(1306, 400, 'Invalid part', { '7.4': 'The file has no chunk of this number' }),
  WrongPart: error(1307, 413, 'Wrong part', {
    '7.1': 'More than was expected',
    '7.4': 'The body is larger than the chunk should be',
  }),
  /** The same number for less than was declared. */
  ShortPart: error(1307, 400, 'Wrong part', 'Less than was declared'),
  ChecksumError: error(1308, 422, 'Checksum error', {
    '7.4': 'The CRC-32 of the chunk differs (or that of the file: the call is refused too)',
  }),
  InvalidFileName: error(1309, 400, 'Invalid file name', { '7.4': 'The file name is not valid' }),
  ChartApiFileError: error(1310, 502, 'Chart API file error', {
    '7.4': 'The chat module could not create or complete the message of the file',
  }),
  FileNotFound: error(1311, 404, 'File not found', 'Unknown, pending, deleted, or in a chat of others'),
  /** `If-Match` or `If-Unmodified-Since` does not hold (RFC 9110 13.1). */
  PreconditionFailed: error(
    1313,
    412,
    'Precondition failed',
    '`If-Match` or `If-Unmodified-Since` does not hold',
  ),
  /** Nothing of what `Range` asks for is in the file (RFC 9110 14). */
  RangeNotSatisfiable: error(1314, 416, 'Range not satisfiable', '`Range` is outside the file'),
  /** The bytes cannot be read or written: a disk or a storage server fails. No room is `StorageFull`. */
  FileStorageFailed: error(1312, 503, 'File storage unavailable', 'Disk or storage server fails', {
    retryAfterSeconds: 5,
  }),
  /** Bytes for an offset that is not the next one, or a newer stream of the same draft has taken over. */
  UploadConflict: error(1315, 409, 'Upload conflict', 'Another offset is next, or another stream took over'),
  TooManyDrafts: error(1316, 409, 'Too many drafts', '`DraftsPerUser`'),
  /** JSON-RPC rows (spec 7.3): they leave as HTTP 200 unless the row says otherwise. */
  ParseError: error(-32700, 400, 'Parse error', '7.3; no JSON', { rpc: -32700 }),
  InvalidRequest: error(-32600, 200, 'Invalid request', '7.3; no JSON-RPC', { rpc: -32600 }),
  MethodNotFound: error(
    -32601,
    200,
    'Method not found',
    { '7.3': 'The method does not exist' },
    { rpc: -32601 },
  ),
  InvalidParams: error(
    -32602,
    200,
    'Invalid params',
    { '7.3': 'Invalid parameters: no tool name, a tool that does not exist, a code that is not valid' },
    { rpc: -32602 },
  ),
  Unauthorized: error(
    -32001,
    200,
    'Unauthorized',
    { '7.3': 'The session may not do this, or there is none' },
    { rpc: -32001 },
  ),
  /** A request without a live token of the resource. */
  TokenRequired: error(
    -32001,
    401,
    'Unauthorized',
    'No token of the address at `/connect`; `WWW-Authenticate` names the metadata',
    { rpc: -32001 },
  ),
  /** A call that a wider scope of the same resource would open (RFC 6750 3.1). */
  InsufficientScope: error(
    -32001,
    403,
    'Unauthorized',
    'Under `/connect`: a wider scope would open it; `WWW-Authenticate` names the scope',
    { rpc: -32001 },
  ),
  ResourceNotFound: error(
    -32002,
    200,
    'Resource not found',
    { '7.3': 'No resource has this URI' },
    { rpc: -32002 },
  ),
  ToolFailed: error(
    -32000,
    200,
    'Tool execution error',
    { '7.3': 'The tool failed, or the module of the capability is not available' },
    { rpc: -32000 },
  ),
  /** Answers clients that declared `elicitation.url` in a handshake (MCP 2025-11-25). */
  UrlElicitationRequired: error(-32042, 200, 'Login required', '1035, as an address', { rpc: -32042 }),
  /** Codes of MCP 2026-07-28, which only its requests get. `InvalidRequestMeta` has the number of `InvalidParams`. */
  HeaderMismatch: error(
    -32020,
    400,
    'Header mismatch',
    'Revision 2026-07-28: a header is missing or differs from the body',
    { rpc: -32020 },
  ),
  UnsupportedRevision: error(
    -32022,
    400,
    'Unsupported protocol version',
    '`MCP-Protocol-Version` names no revision that is served',
    { rpc: -32022 },
  ),
  InvalidRequestMeta: error(
    -32602,
    400,
    'Invalid params',
    'Revision 2026-07-28: a field of `_meta` is missing',
    { rpc: -32602 },
  ),
} satisfies Record<string, ErrorRow>;
