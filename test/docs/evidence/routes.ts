/** Tests of each route of the public and of the internal listener. */
import { type Evidence, REGISTRATION_TESTS } from './evidence.ts';

export const ROUTE_TESTS: Evidence = {
  'GET /health': [
    'test/io/routes/info.test.ts: health: database, memory and sessions',
    'test/e2e/program.test.ts: the first line says where it listens',
  ],
  'GET /.well-known/webauthn': [
    'test/io/routes/info.test.ts: related origins: pages that may use the passkeys',
  ],
  'GET /auth/v1/get_info': ['test/io/routes/info.test.ts: get_info: project, version of three numbers'],
  'GET /auth/v1/info': [
    'test/io/routes/info.test.ts: info: version, ways to log in',
    'test/config/exposure.test.ts: BaseUrl: every address that a start prints',
  ],
  'GET /auth/v1/register_options': [
    'test/io/accounts/accounts.test.ts: register_options and login_options: the shapes',
    'test/io/accounts/passkeys.test.ts: passkey: a second one, listed for exclusion',
  ],
  'GET /auth/v1/login_options': ['test/io/accounts/accounts.test.ts: login: opens a session with the key'],
  'POST /auth/v1/login_options': [
    'test/io/accounts/accounts.test.ts: register_options and login_options: the shapes',
    'test/io/accounts/passkeys.test.ts: options: the icon of the configuration, echoed credential ids',
  ],
  'POST /auth/v1/login': [
    'test/io/accounts/accounts.test.ts: login: opens a session with the key, ends the one that came with it',
    'test/io/accounts/passkeys.test.ts: passkey: sign-up and login with',
  ],
  'POST /auth/v1/login_phone': [
    'test/io/accounts/one-time-codes.test.ts: login_phone: first code creates the account',
  ],
  'POST /auth/v1/login_email': [
    'test/io/accounts/one-time-codes.test.ts: login_email: spelling in capitals finds the same account',
  ],
  'POST /auth/v1/logout': ['test/io/accounts/accounts.test.ts: logout: ends the session'],
  'GET /auth/v1/events': [
    'test/io/sse/front.test.ts: stream: first bytes at once',
    'test/io/sse/front.test.ts: authority: no session 401',
  ],
  'POST /auth/v1/keys/register_key': [
    'test/io/accounts/accounts.test.ts: sign-up: creates account, key and session',
    'test/io/accounts/accounts.test.ts: register_key with a session: a claim, a proof',
  ],
  'GET /auth/v1/keys/user_keys': [
    'test/io/accounts/accounts.test.ts: sign-up: creates account, key and session',
    'test/e2e/path.test.ts: whole path: an agent logs in with its key',
  ],
  'POST /auth/v1/keys/update_key': [
    'test/io/accounts/accounts.test.ts: update_key: flags are set apart from each other',
  ],
  'POST /auth/v1/keys/remove_key': [
    'test/io/accounts/accounts.test.ts: remove_key: ends browser and MCP sessions',
  ],
  'GET /auth/v1/sessions': [
    'test/io/accounts/accounts.test.ts: sessions and close_sessions: listed ones, others, all',
  ],
  'POST /auth/v1/close_sessions': [
    'test/io/accounts/accounts.test.ts: sessions and close_sessions: listed ones, others, all',
  ],
  'GET /auth/v1/login_log': [
    'test/io/accounts/accounts.test.ts: sign-up: creates account, key and session',
    'test/actors/accounts/user.test.ts: login log: bounded, and refusals cannot flush the successes',
  ],
  'POST /auth/v1/app/upsert_usr_app': REGISTRATION_TESTS,
  'GET /auth/v1/app/list': [
    'test/io/apps/apps.test.ts: apps: a new application has the documented shape',
    'test/io/apps/apps.test.ts: registrations survive a restart',
  ],
  'GET /auth/v1/file/:fileId': [
    'test/io/routes/downloads.test.ts: every row, by GET and by HEAD',
    'test/io/routes/downloads.test.ts: v1: whole file, parts, and parts that are none',
  ],
  'POST /auth/v1/file/init_upload': [
    'test/e2e/files/uploads.test.ts: init: 1309 for names, 1301 for sizes',
    'test/e2e/files/uploads.test.ts: init: 1302 for a second upload, 1304 for a CRC-32 in use, 1303 for the 61st upload',
  ],
  'POST /auth/v1/file/upload_part': [
    'test/e2e/files/uploads.test.ts: upload: parts arrive in any order and in parallel; the file, its message and its code exist',
    'test/e2e/files/uploads.test.ts: part: 1305 for an unknown or foreign upload, 1306 for a chunk number outside of it',
    'test/e2e/files/uploads.test.ts: part: 1307 for a chunk of wrong length, 1308 for a wrong CRC-32, after which it may be sent again',
  ],
  'POST /auth/v1/file/cancel_upload': [
    'test/e2e/files/uploads.test.ts: init: 1302 for a second upload, 1304 for a CRC-32 in use, 1303 for the 61st upload',
    'test/actors/files/upload.test.ts: cancelled, the slot is free before the answer',
  ],
  'GET /auth/v1/file/upload_status': [
    'test/e2e/files/uploads.test.ts: upload: parts arrive in any order and in parallel; the file, its message and its code exist',
  ],
  'GET /auth/v2/file/:idOrCode': [
    'test/io/routes/downloads.test.ts: every row, by GET and by HEAD',
    'test/io/routes/downloads.test.ts: v2: raw ids are for users, and for others by the setting alone',
  ],
  'POST /auth/v1/app/remove': [
    'test/io/apps/apps.test.ts: one more than the limit is refused with a row of its own, a removal makes room',
    'test/io/apps/apps.test.ts: foreign, removed and unknown ids are the same 404',
  ],
  'POST /auth/v1/app/rotate_key': [
    'test/io/apps/apps.test.ts: after a rotation two API keys are valid for 24 hours, then one',
    'test/io/apps/apps.test.ts: rotate_key with finish ends the former key',
    'test/actors/apps/app.test.ts: after a rotation the former key is sent for 24 hours',
    'test/actors/apps/app.test.ts: the owner ends an overlap',
    'test/actors/accounts/upcast.test.ts: applications of version 2: the new key of a rotation stays',
  ],
  'GET /auth/v1/app/deliveries': ['test/io/apps/webhooks.test.ts: deliveries: the newest without a cursor'],
  'POST /auth/v1/app/resend': [
    'test/io/apps/webhooks.test.ts: resend: one webhook by its id',
    'test/io/apps/webhooks.test.ts: resend: a range of time',
  ],
  'POST /auth/v1/app/ping': [
    'test/io/apps/webhooks.test.ts: ping: a signed test event now',
    'test/io/apps/webhooks.test.ts: ping: waits for the delivery under way',
  ],
  'POST /auth/v1/app/enable': [
    'test/io/apps/webhooks.test.ts: enable: a disabled webhook',
    'test/io/webhooks/delivery.test.ts: 410: the webhook is disabled at once',
  ],
  'GET /auth/v1/app/info': [
    'test/io/apps/apps.test.ts: apps: every route takes appId, and its former name id',
    'test/io/accounts/app-login.test.ts: app tools: they answer what their REST twins answer',
    'test/io/apps/apps.test.ts: apps: a new application has the documented shape',
    'test/io/apps/apps.test.ts: foreign, removed and unknown ids are the same 404',
  ],
  'GET /auth/v1/app/access': [
    'test/io/accounts/app-login.test.ts: app access: the owner has it from the start',
    'test/io/accounts/app-login.test.ts: app access: another account is on the list',
    'test/io/accounts/app-login.test.ts: another account is on the list from its first login',
  ],
  'POST /auth/v1/app/grant_access': [
    'test/io/accounts/app-login.test.ts: app access: only an application that takes sessions can be granted',
    'test/io/accounts/app-login.test.ts: app access: the owner has it from the start',
    'test/io/accounts/app-login.test.ts: another account is on the list from its first login',
  ],
  'POST /auth/v1/app/revoke_access': [
    'test/io/accounts/app-login.test.ts: app access: the owner has it from the start; revoked, it ends the sessions',
    'test/io/accounts/app-login.test.ts: revoked, it ends the sessions until it is granted again',
  ],
  'POST /auth/v2/file/create_draft': [
    'test/io/routes/files-v2.test.ts: query and body carry the same fields',
  ],
  'POST /auth/v2/file/stream_upload/:fileId': [
    'test/io/routes/files-v2.test.ts: declared and chunked bodies of any type become the file',
    'test/io/routes/files-v2.test.ts: Range writes pieces, completes at the declared size',
  ],
  'PATCH /auth/v2/file/stream_upload/:fileId': [
    'test/io/routes/files-v2.test.ts: resumable uploads: pieces, HEAD, 409',
  ],
  'HEAD /auth/v2/file/stream_upload/:fileId': [
    'test/io/routes/files-v2.test.ts: resumable uploads: pieces, HEAD, 409',
  ],
  'DELETE /auth/v2/file/stream_upload/:fileId': [
    'test/io/routes/files-v2.test.ts: resumable uploads: pieces, HEAD, 409',
  ],
  'POST /auth/v1/mcp_login': [
    'test/io/accounts/mcp-login.test.ts: McpBasic and McpVerified answer the shape of spec 4.2',
  ],
  'POST /mcp': [
    'test/io/routes/mcp.test.ts: initialize: always 2024-11-05',
    'test/io/mcp/client.test.ts: official client: connects, pings, lists, calls a tool',
    'test/e2e/mcp-client-2.test.ts: lists, calls, reads, pings, leaves',
    'test/e2e/mcp-client-2.test.ts: client 2: all modes on the real program',
  ],
  'GET /connect/request': [
    'test/io/connect/authorize.test.ts: request: a bad client or redirect URI is shown, never redirected',
    'test/io/connect/authorize.test.ts: request: without a session step login, then consent',
  ],
  'POST /connect/decide': [
    'test/io/connect/authorize.test.ts: decide: the challenge is good once, for its session, its request and its own page',
    'test/io/connect/authorize.test.ts: decide: consent every time',
  ],
  'POST /connect/token': [
    'test/io/connect/life.test.ts: code: bound to client, redirect URI, PKCE verifier and resource',
    'test/io/connect/refresh.test.ts: refresh: a former token gives the newest one of the chain and does not rotate',
  ],
  'POST /connect/revoke': [
    'test/io/connect/life.test.ts: revoke: a refresh token ends the grant, an access token its session, another client nothing',
  ],
  'POST /connect/register': [
    'test/io/connect/registration.test.ts: register: 201 without storage',
    'test/io/connect/registration.test.ts: register: bad redirect URIs are invalid_redirect_uri',
  ],
  'GET /auth/v1/connected_hosts': ['test/io/connect/life.test.ts: owner: sees connected hosts and ends one'],
  'POST /auth/v1/connected_hosts/revoke': [
    'test/io/connect/life.test.ts: owner: sees connected hosts and ends one',
  ],
  'GET /ProxyAdmin/api/connected_hosts': [
    'test/io/connect/life.test.ts: admin: lists and ends the connected hosts',
  ],
  'POST /ProxyAdmin/api/connected_hosts/revoke': [
    'test/io/connect/life.test.ts: admin: lists and ends the connected hosts',
  ],
  'POST /connect/mcp': [
    'test/io/connect/endpoint.test.ts: /connect/mcp: without or with a dead token 401 for every method and message',
    'test/io/connect/endpoint.test.ts: /connect/mcp: a token of it is served as at /mcp, GET is 405',
  ],
  'GET /connect/mcp': [
    'test/io/connect/endpoint.test.ts: /connect/mcp: without or with a dead token 401 for every method and message',
    'test/io/connect/endpoint.test.ts: /connect/mcp: a token of it is served as at /mcp, GET is 405',
  ],
  'DELETE /connect/mcp': [
    'test/io/connect/endpoint.test.ts: /connect/mcp: without or with a dead token 401 for every method and message',
  ],
  'GET /.well-known/oauth-protected-resource/connect/mcp': [
    'test/io/connect/endpoint.test.ts: metadata: the resource is the typed address, the issuer is BaseUrl',
  ],
  'GET /.well-known/oauth-authorization-server': [
    'test/io/connect/endpoint.test.ts: metadata: the server names its endpoints, registration only where it is on',
    'test/io/connect/endpoint.test.ts: metadata: with the issuer BaseUrl/connect the root has no document',
  ],
  'GET /.well-known/oauth-authorization-server/connect': [
    'test/io/connect/endpoint.test.ts: metadata: the server names its endpoints, registration only where it is on',
  ],
  'GET /auth/v1/mcp_profiles': [
    'test/e2e/connect/profile.test.ts: connect profile: a page lists the addresses',
  ],
  'POST /mcp/p/:profile': [
    'test/io/mcp/subsets.test.ts: profile: lists and calls its tools and resources alone',
  ],
  'GET /mcp/p/:profile': ['test/io/mcp/subsets.test.ts: profile: an unknown one is 404 for every method'],
  'DELETE /mcp/p/:profile': ['test/io/mcp/subsets.test.ts: profile: an unknown one is 404 for every method'],
  'POST /connect/p/:profile/mcp': [
    'test/io/connect/profiles.test.ts: /connect/p/NAME/mcp: the challenge names its own metadata',
    'test/e2e/connect/profile.test.ts: connect profile: a token of it lists and calls its tools',
  ],
  'GET /connect/p/:profile/mcp': [
    'test/io/connect/profiles.test.ts: /connect/p/NAME/mcp: an unknown profile is 404',
  ],
  'DELETE /connect/p/:profile/mcp': [
    'test/io/connect/profiles.test.ts: /connect/p/NAME/mcp: an unknown profile is 404',
  ],
  'GET /.well-known/oauth-protected-resource/connect/p/:profile/mcp': [
    'test/io/connect/profiles.test.ts: /connect/p/NAME/mcp: metadata names its own address',
  ],
  'GET /mcp': ['test/io/routes/mcp.test.ts: GET: 405 with Allow and a JSON body'],
  'DELETE /mcp': ['test/io/routes/mcp.test.ts: DELETE: 204 with a session id, else 405'],
  'GET /ProxyAdmin/api/settings': [
    'test/io/routes/info.test.ts: settings: an admin sees all of them with their bounds, others none',
  ],
  'POST /ProxyAdmin/api/settings': [
    'test/e2e/path.test.ts: settings: an admin change takes effect at once',
    'test/io/admin/admin.test.ts: admin: changes need a login of the last 15 minutes',
  ],
  'GET /ProxyAdmin/api/users': ['test/io/admin/admin.test.ts: admin: users come in pages'],
  'POST /ProxyAdmin/api/users/block': [
    'test/io/admin/admin.test.ts: admin: a block ends every session',
    'test/io/admin/admin.test.ts: admin: a block without an account, of oneself',
  ],
  'GET /ProxyAdmin/api/user_keys': [
    'test/io/admin/admin.test.ts: admin: keys and sessions of any account',
    'test/io/admin/keys.test.ts: all accounts in pages, each key once',
    'test/io/admin/keys.test.ts: a public key is found whole, a removed one with `deleted` alone',
    'test/io/admin/keys.test.ts: a page looks at 1,000 accounts, 50 at a time',
  ],
  'POST /ProxyAdmin/api/user_keys/add': [
    'test/io/admin/keys.test.ts: an added key is a claim that logs in an agent and no browser',
    'test/io/admin/keys.test.ts: a key that is held, unusable, or one too many is refused',
  ],
  'POST /ProxyAdmin/api/user_keys/update': [
    'test/io/admin/keys.test.ts: forbidden MCP ends the agent sessions of the key alone',
  ],
  'POST /ProxyAdmin/api/user_keys/remove': [
    'test/io/admin/keys.test.ts: a removal ends the sessions of the key before it answers',
    'test/io/admin/keys.test.ts: the last key is protected as it is from its owner',
  ],
  'GET /ProxyAdmin/api/sessions': ['test/io/admin/admin.test.ts: admin: keys and sessions of any account'],
  'GET /ProxyAdmin/api/apps': [
    'test/io/admin/admin.test.ts: admin: applications of all owners are listed in pages',
  ],
  'POST /ProxyAdmin/api/apps/update': [
    'test/io/admin/admin.test.ts: admin: an application is approved, enabled, disabled and given a key',
    'test/io/admin/admin.test.ts: admin: an update of no application',
  ],
  'GET /ProxyAdmin/api/audit': [
    'test/io/admin/admin.test.ts: admin: the audit log is read from any position',
    'test/io/admin/admin.test.ts: admin: the audit log is the newest first, and filtered',
    'test/io/admin/admin.test.ts: admin: a bad filter of the audit log is 400',
    'test/io/admin/audit.test.ts: a filter that matches nothing looks at 20,000 records',
    'test/io/admin/audit.test.ts: with records of calls in the database pages hold each record',
    'test/io/admin/audit-nodes.test.ts: audit of a cluster: a page is continued by the node that began it',
  ],
  'GET /ProxyAdmin/api/audit/nodes': [
    'test/io/admin/audit-nodes.test.ts: audit of a cluster: the panel learns where records of calls are',
  ],
  'GET /ProxyAdmin/api/audit/events': ['test/io/admin/admin.test.ts: admin: the events of the audit log'],
  'GET /ProxyAdmin/api/bounds': [
    'test/io/admin/admin.test.ts: admin: the bounds with their shares, what is held and refused',
  ],
  'GET /ProxyAdmin/api/catalog': [
    'test/io/admin/admin.test.ts: admin: the catalog shows the size of each list of tools',
  ],
  'GET /ProxyAdmin/api/overview': ['test/io/admin/admin.test.ts: admin: the overview counts sessions'],
  'GET /ProxyAdmin/api/staff': ['test/io/admin/staff.test.ts: staff: a viewer reads'],
  'POST /ProxyAdmin/api/staff': [
    'test/io/admin/staff.test.ts: staff: unknown accounts, unknown roles and the last admin are refused',
  ],
  'POST /ProxyAdmin/api/claim': ['test/io/admin/staff.test.ts: set-up link: good once'],
  'GET /ProxyAdmin/api/deliveries': [
    'test/e2e/pages/admin.test.ts: Approves an application, shows its deliveries and sends one again',
  ],
  'POST /ProxyAdmin/api/resend': [
    'test/e2e/pages/admin.test.ts: Approves an application, shows its deliveries and sends one again',
  ],
  'GET /ProxyAdmin/api/nodes': [
    'test/e2e/pages/admin-nodes.test.ts: nodes: state, partitions and lease of each, also of one that is out',
  ],
  'GET /ProxyAdmin/api/live': [
    'test/io/admin/dashboard.test.ts: live: a stream for the staff that ends with the session',
    'test/e2e/cluster/admin.test.ts: live figures of another node and of all come through the panel of any',
  ],
  'GET /ProxyAdmin/api/uploads': [
    'test/io/admin/dashboard.test.ts: actors: nothing failed, unknown ones are not found',
  ],
  'GET /ProxyAdmin/api/events': ['test/io/admin/dashboard.test.ts: events: the newest first, page by page'],
  'GET /ProxyAdmin/api/actors': [
    'test/io/admin/dashboard.test.ts: actors: nothing failed, unknown ones are not found',
  ],
  'POST /ProxyAdmin/api/actors/reset': [
    'test/io/admin/dashboard.test.ts: actors: nothing failed, unknown ones are not found',
  ],
  'POST /ProxyAdmin/api/actors/skip': [
    'test/io/admin/dashboard.test.ts: actors: nothing failed, unknown ones are not found',
  ],
  'POST /ProxyAdmin/api/actors/discard': [
    'test/io/admin/dashboard.test.ts: actors: nothing failed, unknown ones are not found',
  ],
  'GET /docs/swagger/openapi.json': [
    'test/io/http/openapi/document.test.ts: openapi: the gateway serves its own description',
  ],
  'POST /ProxyAdmin/api/reload': [
    'test/io/admin/admin.test.ts: admin: a reload says what is served, and is audited',
    'test/io/admin/admin.test.ts: admin: a refused reload names every fault',
    'test/e2e/cluster/admin.test.ts: a reload at one node reaches all, and names a node whose file has faults',
    'test/e2e/mcp-client.test.ts: swapped by SIGHUP and by an admin',
  ],
  'GET /docs/openapi.json': [
    'test/io/http/openapi/document.test.ts: openapi: the gateway serves its own description',
    'test/io/http/openapi/document.test.ts: every route of the table is described once',
  ],
  'GET /:module/:version/:path': [
    'test/io/proxy/proxy.test.ts: proxy: a call goes to the module with its query and bytes',
    'test/io/proxy/proxy.test.ts: proxy: without a session, or with one that opens nothing',
    'test/e2e/path.test.ts: whole path: REST calls reach the wallet',
  ],
  'POST /:module/:version/:path': [
    'test/io/proxy/proxy.test.ts: proxy: each call leaves a record; one that may change something',
  ],
  'PUT /:module/:version/:path': ['test/io/proxy/proxy.test.ts: proxy: PUT, PATCH, DELETE and HEAD arrive'],
  'PATCH /:module/:version/:path': ['test/io/proxy/proxy.test.ts: proxy: PUT, PATCH, DELETE and HEAD arrive'],
  'DELETE /:module/:version/:path': [
    'test/io/proxy/proxy.test.ts: proxy: PUT, PATCH, DELETE and HEAD arrive',
  ],
  'GET internal /metrics': [
    'test/e2e/program.test.ts: the first line says where it listens',
    'test/e2e/modules.test.ts: module down: -32000 until the breaker opens',
    'test/io/observability/metrics.test.ts: metrics: tool calls count by tool and outcome',
    'test/io/observability/metrics.test.ts: metrics: REST calls count by module',
  ],
  'GET internal /health': ['test/e2e/program.test.ts: the first line says where it listens'],
  'POST internal /internal/v1/events': [
    'test/io/modules/events.test.ts: accepts a batch of the module of its key',
    'test/io/modules/events.test.ts: 401 without a key, with a wrong one, and with that of another module',
    'test/io/modules/events.test.ts: refuses invalid and oversized batches',
  ],
  'POST internal /internal/v1/files/remove': [
    'test/io/files/storage/removals.test.ts: each file once, no upload under way, and an audit record with the number',
    'test/io/files/storage/removals.test.ts: a storage that fails is 1312 with no count; a repetition removes the rest',
    'test/e2e/files/downloads.test.ts: removed files are 404 at once, and open uploads continue',
  ],
};
