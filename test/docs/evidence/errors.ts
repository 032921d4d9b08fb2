/** Tests of each row of the error table. */
import type { Evidence } from './evidence.ts';

export const ERROR_TESTS: Evidence = {
  InternalError: ['test/io/http/pipeline.test.ts: pipeline: a bug'],
  InvalidInput: [
    'test/io/http/pipeline.test.ts: pipeline: a JSON body is checked by its schema',
    'test/io/accounts/mcp-login.test.ts: mcp_login: malformed headers are 400',
  ],
  AccessRateLimit: ['test/io/http/limits.test.ts: limits: the 11th anonymous request of a connection is 429'],
  Overloaded: [
    'test/io/http/front.test.ts: front: requests and bodies in flight are bounded',
    'test/workers/pool.test.ts: pool: a full queue refuses with Overloaded',
    'test/io/modules/client.test.ts: client: calls over the bound of an origin are refused',
  ],
  NotFound: [
    'test/io/http/pipeline.test.ts: unknown paths and methods get 404 and 405',
    'test/io/web/pages.test.ts: an unknown address is a page for browsers and JSON for every other client',
  ],
  LinkedMessageNotFound: [
    'test/io/modules/chat-files.test.ts: a linked message that is not in the chat is LinkedMessageNotFound',
    'test/io/modules/chat-files.test.ts: only 404 with 2204 to a linked message',
    'test/actors/files/draft.test.ts: an unknown linked message leaves nothing to remove',
  ],
  MethodNotAllowed: ['test/io/http/pipeline.test.ts: unknown paths and methods get 404 and 405'],
  BodyTooLarge: [
    'test/io/http/front.test.ts: front: a body over the cap is 413 at once',
    'test/io/routes/mcp.test.ts: body: one byte over 256 KiB is 413',
  ],
  UnsupportedMediaType: [
    'test/io/routes/files-v2.test.ts: a form and a coded body are 415',
    'test/e2e/files/uploads.test.ts: part: a form and an encoded body are 415; nothing is stored, and the upload continues',
    'test/io/http/origin.test.ts: origin: a body of another type is 415, with a cookie 403',
    'test/io/routes/mcp.test.ts: content type: anything but JSON is 415',
  ],
  UnsupportedContentCoding: [
    'test/io/http/origin.test.ts: body: a compressed one is 415 and names the coding',
    'test/io/connect/registration.test.ts: register: a compressed body is 415',
    'test/io/routes/files-v2.test.ts: a form and a coded body are 415',
  ],
  ModuleFailed: [
    'test/io/modules/client.test.ts: client: a backend that is down is ModuleFailed',
    'test/io/modules/client.test.ts: an answer cut in half is ModuleFailed',
  ],
  ModuleTimedOut: [
    'test/io/modules/client.test.ts: client: a silent backend is ModuleTimedOut at the deadline',
    'test/e2e/modules.test.ts: module slow: -32000 at the time-out of the tool',
  ],
  ModuleUnavailable: [
    'test/io/modules/client.test.ts: client: five failures open the breaker',
    'test/io/mcp/catalog.test.ts: built-in tools of a module that is not configured',
  ],
  JournalUnavailable: [
    'test/actors/runtime/lifecycle.test.ts: journal lost: every waiter gets 503 with 5 seconds',
  ],
  Quarantined: [
    'test/actors/runtime/supervision.test.ts: supervision: more than 5 failures in 60 s are a quarantine',
  ],
  StorageFull: [
    'test/actors/runtime/bounds.test.ts: bounds: a full journal refuses growth',
    'test/actors/accounts/user.test.ts: storage full: logins are refused, logouts and removals are served',
  ],
  Stopping: [
    'test/io/http/front.test.ts: front: a drain finishes running requests',
    'test/actors/runtime/lifecycle.test.ts: drain: refuses new commands',
  ],
  ModuleAnswerTooLarge: [
    'test/io/modules/client.test.ts: client: an answer of exactly the cap passes',
    'test/io/mcp/call.test.ts: too large is an isError',
  ],
  IdempotencyKeyReused: [
    'test/actors/runtime/runtime.test.ts: an Idempotency-Key with another fingerprint is refused',
    'test/io/accounts/accounts.test.ts: Idempotency-Key: with another body it is 422',
  ],
  ConfigurationRefused: ['test/io/admin/admin.test.ts: admin: a refused reload names every fault'],
  NotWithCluster: [
    'test/io/http/features.test.ts: features: a route of a missing feature answers 503 with 1018 and is not called',
  ],
  BodyTooSlow: [
    'test/io/http/chunked.test.ts: minimum rate: less than 1 KiB/s over 10 s is 408',
    'test/io/proxy/bodies.test.ts: floor: a proxied body below 1 KiB/s is 408',
  ],
  SessionNotFound: [
    'test/io/http/pipeline.test.ts: pipeline: the session comes from the cookie or the bearer',
    'test/io/accounts/mcp-login.test.ts: unknown, removed and low-order keys are Session not found',
  ],
  AccountNotFound: [
    'test/io/accounts/mcp-login.test.ts: a key whose account is missing is Account not found',
    'test/io/accounts/accounts.test.ts: login: a key whose account is missing is 1102',
  ],
  AccessDenied: [
    'test/io/accounts/mcp-login.test.ts: no McpAccess, a blocked user and any application are Access denied',
  ],
  Forbidden: [
    'test/io/http/origin.test.ts: origin: a foreign page cannot change anything',
    'test/io/routes/info.test.ts: settings: an admin sees all of them',
  ],
  ChallengeExpired: [
    'test/io/accounts/accounts.test.ts: challenge: expired, used, unknown',
    'test/io/accounts/mcp-login.test.ts: the timestamp may be 300 seconds off either way',
  ],
  InvalidSignature: [
    'test/io/accounts/accounts.test.ts: sign-up: a wrong signature is 1105',
    'test/io/accounts/mcp-login.test.ts: what is signed is the little-endian int64',
    'test/io/accounts/passkeys.test.ts: login: whatever the ceremony was not made for is 1105',
  ],
  KeyLimitReached: [
    'test/io/accounts/accounts.test.ts: passKeyFlag: replaces older password keys at once, counts the limit',
    'test/io/accounts/passkeys.test.ts: registration: the key limit counts passkeys',
  ],
  KeyAlreadyRegistered: [
    'test/io/accounts/accounts.test.ts: register_key with a session: a claim, a proof',
    'test/io/accounts/passkeys.test.ts: registration: a credential id has one owner',
  ],
  KeyNotFound: [
    'test/io/accounts/accounts.test.ts: keys: foreign, removed and unknown ones are the same 404',
  ],
  InvalidCode: [
    'test/io/accounts/one-time-codes.test.ts: code: wrong ones are counted, the fifth failure burns it',
  ],
  FreshLoginRequired: [
    'test/io/accounts/accounts.test.ts: changes with an old login are 403',
    'test/io/admin/admin.test.ts: admin: changes need a login of the last 15 minutes',
  ],
  DeliveryUnavailable: ['test/io/accounts/one-time-codes.test.ts: chat module: absent, 503'],
  AppLimitReached: ['test/io/apps/apps.test.ts: one more than the limit is refused with a row of its own'],
  WebhookDisabled: ['test/io/webhooks/delivery.test.ts: 410: the webhook is disabled at once'],
  SetupLinkOver: ['test/io/admin/staff.test.ts: set-up link: good once'],
  MaxFileSize: [
    'test/io/routes/files-v2.test.ts: a size that was not declared, none at all, too much',
    'test/actors/files/upload.test.ts: init refuses in the order 1309, 1301',
    'test/e2e/files/uploads.test.ts: init: 1309 for names, 1301 for sizes',
  ],
  EmptyFile: ['test/actors/files/draft.test.ts: refusals in the order name, size, module'],
  AlreadyDownload: [
    'test/e2e/files/uploads.test.ts: init: 1302 for a second upload, 1304 for a CRC-32 in use, 1303 for the 61st upload',
  ],
  TooManyDownloads: [
    'test/e2e/files/uploads.test.ts: init: 1302 for a second upload, 1304 for a CRC-32 in use, 1303 for the 61st upload',
  ],
  CRC32AlreadyUsed: [
    'test/e2e/files/uploads.test.ts: init: 1302 for a second upload, 1304 for a CRC-32 in use, 1303 for the 61st upload',
    'test/actors/files/upload.test.ts: two users race for one CRC-32, one wins',
  ],
  InvalidID: [
    'test/io/routes/files-v2.test.ts: unknown and malformed file ids are 1305',
    'test/e2e/files/uploads.test.ts: part: 1305 for an unknown or foreign upload, 1306 for a chunk number outside of it',
  ],
  InvalidPart: [
    'test/e2e/files/uploads.test.ts: part: 1305 for an unknown or foreign upload, 1306 for a chunk number outside of it',
  ],
  WrongPart: [
    'test/io/routes/files-v2.test.ts: a size that was not declared, none at all, too much',
    'test/e2e/files/uploads.test.ts: part: 1307 for a chunk of wrong length, 1308 for a wrong CRC-32, after which it may be sent again',
  ],
  ShortPart: ['test/actors/files/draft.test.ts: a size that is not the declared one is refused'],
  ChecksumError: [
    'test/io/routes/files-v2.test.ts: digests of body and file are checked',
    'test/e2e/files/uploads.test.ts: part: 1307 for a chunk of wrong length, 1308 for a wrong CRC-32, after which it may be sent again',
    'test/e2e/files/uploads.test.ts: a full-file mismatch is 1308, ends the upload',
  ],
  InvalidFileName: [
    'test/io/routes/files-v2.test.ts: refusals name, size, module, in this order',
    'test/e2e/files/uploads.test.ts: init: 1309 for names, 1301 for sizes',
  ],
  ChartApiFileError: [
    'test/actors/files/draft.test.ts: module down at the completion: 1310',
    'test/e2e/files/uploads.test.ts: module down at init or completion: 1310',
  ],
  FileNotFound: [
    'test/io/routes/downloads.test.ts: codes: unknown, tampered with, and raw ids that are none are all 404',
    'test/io/routes/downloads.test.ts: access: one that is taken away, and a file that is deleted, hold two seconds later',
  ],
  PreconditionFailed: [
    'test/domain/files/preconditions.test.ts: download: $',
    'test/io/routes/downloads.test.ts: every row, by GET and by HEAD',
  ],
  RangeNotSatisfiable: [
    'test/domain/files/preconditions.test.ts: download: $',
    'test/io/routes/downloads.test.ts: every row, by GET and by HEAD',
  ],
  FileStorageFailed: [
    'test/io/files/storage/storage.test.ts: a failing disk is 1312 for the caller and a sentence in the log',
  ],
  UploadConflict: ['test/actors/files/draft.test.ts: a newer stream fences every command of the older one'],
  TooManyDrafts: ['test/io/routes/files-v2.test.ts: as many at once as DraftsPerUser'],
  ParseError: ['test/io/routes/mcp.test.ts: parse error: HTTP 400, -32700, and no id'],
  InvalidRequest: ['test/io/routes/mcp.test.ts: invalid requests: -32600 that echoes the id'],
  MethodNotFound: ['test/io/routes/mcp.test.ts: unknown methods: HTTP 200, -32601, the same id'],
  InvalidParams: ['test/io/mcp/call.test.ts: params: missing and unknown names are -32602'],
  OAuthInvalidRequest: [
    'test/io/connect/life.test.ts: code: bound to client, redirect URI, PKCE verifier and resource',
  ],
  OAuthInvalidClient: [
    'test/io/connect/life.test.ts: code: bound to client, redirect URI, PKCE verifier and resource',
  ],
  OAuthInvalidGrant: [
    'test/io/connect/life.test.ts: code: bound to client, redirect URI, PKCE verifier and resource',
  ],
  OAuthUnsupportedGrantType: [
    'test/io/connect/life.test.ts: code: bound to client, redirect URI, PKCE verifier and resource',
  ],
  OAuthInvalidTarget: [
    'test/io/connect/life.test.ts: code: bound to client, redirect URI, PKCE verifier and resource',
  ],
  OAuthUnsupportedResponseType: [
    'test/io/connect/authorize.test.ts: request: other faults go to the redirect URI',
  ],
  OAuthInvalidScope: [
    'test/io/connect/life.test.ts: refresh: bound to client and resource, never wider than the grant',
  ],
  OAuthInvalidRedirectUri: [
    'test/io/connect/registration.test.ts: register: bad redirect URIs are invalid_redirect_uri',
  ],
  OAuthInvalidClientMetadata: [
    'test/io/connect/registration.test.ts: register: bad redirect URIs are invalid_redirect_uri',
  ],
  OAuthRegistrationOff: [
    'test/io/connect/registration.test.ts: register: 403 access_denied where registration is off',
  ],
  FieldTooLong: ['test/e2e/proxied/requests.test.ts: proxied requests: each arrives as it was sent'],
  TrailersNotSupported: ['test/io/proxy/proxy.test.ts: proxy: a request that announces trailers is 501'],
  OAuthConsentRequired: ['test/io/connect/authorize.test.ts: request: other faults go to the redirect URI'],
  TaskTimedOut: [
    'test/workers/standstill.test.ts: pool: a verification that its thread does not finish in 5 s is TaskTimedOut',
  ],
  UpgradeRequired: [
    'test/io/proxy/web-sockets.test.ts: WebSocket: a faulty handshake is refused before the module is called',
  ],
  TokenRequired: [
    'test/io/connect/endpoint.test.ts: /connect/mcp: without or with a dead token 401 for every method and message',
  ],
  InsufficientScope: [
    'test/io/connect/scopes.test.ts: call beyond the scope: 403 names the narrowest scope that opens it',
  ],
  Unauthorized: [
    'test/io/routes/mcp.test.ts: bearer: what opens nothing is -32001',
    'test/io/mcp/call.test.ts: known but closed tools -32001',
  ],
  ResourceNotFound: ['test/io/mcp/catalog.test.ts: resources/read: uri beside text and mimeType'],
  ToolFailed: ['test/io/mcp/call.test.ts: cancelled: stops the call of the same session and id'],
  HeaderMismatch: ['test/io/mcp/stateless.test.ts: a missing or another one is 400 with -32020'],
  UnsupportedRevision: ['test/io/mcp/stateless.test.ts: a header that names none is 400 with -32022'],
  InvalidRequestMeta: ['test/io/mcp/stateless.test.ts: a missing field is 400 with -32602'],
};
