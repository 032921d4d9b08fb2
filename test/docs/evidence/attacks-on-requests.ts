/** Tests of docs/SECURITY.md: general attacks, HTTP, shares, modules, limits, codes, access. */
import type { Evidence } from './evidence.ts';

export const ATTACKS_ON_REQUESTS: Evidence = {
  'inputs that make a reader slow: long numbers, deep and wide JSON, runs of one character, in bodies, arguments, queries and fields':
    [
      'test/e2e/loop-budget/loop-budget.test.ts: event loop: no adversarial input costs more than 50 ms',
      'test/domain/raw-json.test.ts: numberFault: a number of more than 40 characters is named unread',
      'test/tidy.test.ts: tidy: expressions: none goes back over a run of its text',
    ],
  'a `pattern` of a tool that goes back over its text': [
    'test/domain/linear-pattern.test.ts: linear pattern: finds what a regular expression with the flag u finds',
    'test/domain/linear-pattern.test.ts: linear pattern: what a linear engine lacks is a fault that names the part',
  ],
  'slow inputs in answers and events of modules': [
    'test/e2e/loop-budget/loop-budget.test.ts: event loop: no adversarial input costs more than 50 ms',
  ],
  'a tick of the event loop that takes long all the same': [
    'test/io/observability/loop-watch.test.ts: loop watch: a stretch of more than 100 ms is named with its route and tool',
    'test/io/observability/loop-watch.test.ts: loop watch: the handler of a request counts for its route',
  ],
  'ambiguous framing': [
    'test/io/http/front.test.ts: front: a request that two parsers could read differently',
  ],
  'HEAD then GET on one connection': [
    'test/io/http/pipeline.test.ts: pipeline: HEAD of a GET route is answered with headers only',
  ],
  'large heads': ['test/io/http/front.test.ts: front: more than 100 fields'],
  'slow clients': [
    'test/io/http/front.test.ts: front: silent connects, slow heads and slow bodies',
    'test/io/http/front.test.ts: front: connections over the cap are closed',
  ],
  'large and lying bodies': ['test/io/http/front.test.ts: front: a body over the cap is 413 at once'],
  'large and lying uploads': [
    'test/e2e/files/draft-refusals.test.ts: 413 with 1301 reaches the client in every attempt, declared and chunked',
    'test/io/routes/upload-sockets.test.ts: a body shorter than its Content-Length is a lost client',
    'test/e2e/files/drafts.test.ts: memory stays bounded: 60 streams at once',
  ],
  'bursts of paused uploads': [
    'test/io/files/upload/prebuffered-body.test.ts: any pieces, any moment of reading, any reader',
    'test/io/files/upload/receiver.test.ts: four tasks under way pause the client',
  ],
  'symbolic links in the storage': [
    'test/io/files/storage/storage.test.ts: symbolic links are followed nowhere',
  ],
  'interrupted uploads': [
    'test/io/routes/upload-sockets.test.ts: in mid-body removes message and bytes',
    'test/io/routes/upload-sockets.test.ts: in mid-piece keeps what arrived',
    'test/io/routes/upload-sockets.test.ts: a second request takes over from the first',
  ],
  'clients that never read': [
    'test/io/files/download/sender.test.ts: front: one that never reads is closed, and memory stays where it was',
    'test/io/sse/front.test.ts: slow readers: one that pauses gets everything, one that never reads is closed',
    'test/e2e/files/download-bounds.test.ts: clients that never read use bounded memory, are closed, and delay no other client',
  ],
  'concurrent downloads': [
    'test/io/routes/downloads.test.ts: answers that wait for the chat module at once never hold each other’s bytes',
    'test/io/files/download/sender.test.ts: any mix of downloads at once, some given up: every byte is the right one',
  ],
  'hostile JSON': [
    'test/io/http/pipeline.test.ts: pipeline: a JSON body is checked by its schema',
    'test/io/routes/mcp.test.ts: parse error: HTTP 400',
    'test/io/http/parsers.test.ts: nesting is counted as a parser counts it',
  ],
  'traversal in paths and arguments': [
    'test/io/http/parsers.test.ts: a decoded segment never holds a separator',
    'test/io/modules/endpoint.test.ts: a path argument stays one segment',
  ],
  'traversal in file names and ids': [
    'test/io/routes/files-v2.test.ts: refusals name, size, module, in this order',
    'test/io/routes/files-v2.test.ts: unknown and malformed file ids are 1305',
    'test/e2e/files/uploads.test.ts: init: 1309 for names, 1301 for sizes',
    'test/e2e/files/uploads.test.ts: part: 1305 for an unknown or foreign upload, 1306 for a chunk number outside of it',
  ],
  'line breaks in header values': [
    'test/io/http/front.test.ts: front: the writer refuses everything that could end a header line',
    'test/io/modules/endpoint.test.ts: gateway headers: a value that could break a header',
    'test/io/http-client/connections.test.ts: nothing that could end a line or a request is written',
  ],
  'cross-site requests': [
    'test/io/http/origin.test.ts: origin: a foreign page cannot change anything',
    'test/io/http/origin.test.ts: a body of another type is 415, with a cookie 403',
  ],
  'a WebSocket of a foreign page': [
    'test/io/proxy/web-sockets.test.ts: WebSocket: where the cookie counts, only a page of an own origin may open one',
  ],
  'WebSockets that fill connections or memory': [
    'test/io/proxy/web-sockets.test.ts: WebSocket: sockets of a session have a share, and the rest is refused with 429',
    'test/io/proxy/web-sockets.test.ts: WebSocket: a module that takes nothing ends the socket with 1013',
    'test/io/proxy/web-sockets.test.ts: WebSocket: a client that reads nothing pauses its module, and loses nothing',
    'test/io/proxy/web-sockets.test.ts: WebSocket: a silent side is pinged, then closed; an answer to a ping keeps a side',
    'test/io/proxy/web-sockets.test.ts: WebSocket: connections and shares are back at 0 after every kind of end',
  ],
  'faulty WebSocket frames': [
    'test/io/proxy/web-sockets.test.ts: WebSocket: frames of a client, byte for byte',
  ],
  'session fixation': [
    'test/io/accounts/accounts.test.ts: login: opens a session with the key, ends the one that came with it',
  ],
  'guessed tokens': [
    'test/domain/ids.test.ts: token: 46 characters led by the partition of its user, known by its SHA-256 alone',
    'test/actors/runtime/runtime.test.ts: query: an unknown id is answered from the initial state and creates nothing',
  ],
  'forged Ed25519 signatures': [
    'test/workers/ed25519.test.ts: ed25519: every vector has the guarded',
    'test/workers/ed25519.test.ts: S + L in place of S is refused',
    'test/workers/ed25519.test.ts: forgeries that OpenSSL accepts',
  ],
  'forged ceremonies': [
    'test/io/accounts/passkeys.test.ts: registration: whatever the ceremony was not made for',
    'test/io/accounts/passkeys.test.ts: login: whatever the ceremony was not made for',
    'test/e2e/pages/passkeys.test.ts: browser: forged signatures and missing presence',
  ],
  'webhookUrl at registration': [
    'test/domain/webhooks/target.test.ts: webhook target: every spelling of an inner address is refused',
    'test/domain/webhooks/target.test.ts: webhook target: public names and addresses pass',
    'test/io/apps/apps.test.ts: a url is checked by its syntax',
  ],
  'webhook at delivery': [
    'test/io/webhooks/sender.test.ts: guard: a name that resolves to a forbidden address',
    'test/io/webhooks/sender.test.ts: guard: an address that changes between check and connect',
    'test/io/webhooks/sender.test.ts: guard: literals, localhost and ports',
    'test/io/webhooks/sender.test.ts: statuses: the status of the receiver is reported unchanged',
    'test/io/webhooks/sender.test.ts: proxy: environment variables have no effect',
  ],
  "arguments that change a tool's host": [
    'test/io/modules/endpoint.test.ts: whatever the arguments are, host and path shape do not change',
  ],
  'oversized answers': [
    'test/io/modules/client.test.ts: an endless answer is cut at the cap',
    'test/io/modules/client.test.ts: an unrequested content coding is ModuleFailed, never decoded',
    'test/io/modules/client.test.ts: a dripping answer does not extend the deadline',
  ],
  'forged gateway headers': [
    'test/io/modules/header-names.test.ts: header names: no name of the table and of the gateway is forwarded',
    'test/io/modules/header-names.test.ts: header names: a name with another character than letters, digits and -',
    'test/io/mcp/call.test.ts: headers: who calls, written by the gateway alone',
  ],
  'names that a language reads as others, names that other software trusts': [
    'test/io/modules/header-names.test.ts: sees no forged field on a public path without a login',
    'test/io/modules/header-names.test.ts: header names: docs/modules.md shows the table',
  ],
  'evasion of the limiter': [
    'test/io/http/limits.test.ts: limits: X-Forwarded-For is read from the right',
    'test/io/http/limits.test.ts: CheckPubKey adds the key scope',
    'test/actors/limits/limiter.test.ts: connections of one address share a pool',
    'test/actors/limits/limiter.test.ts: three million keys in one window stay bounded',
  ],
  'line breaks and terminal codes in the log': [
    'test/io/observability/request-log.test.ts: request log: CR, LF, ANSI, quotes and other alphabets stay inside one line',
    'test/io/observability/request-log.test.ts: request log: values of 1 MB are cut',
    'test/e2e/secrets.test.ts: log: hostile paths and user agents',
  ],
  'a stalled log reader': [
    'test/io/observability/request-log.test.ts: log sink: a reader that never reads loses lines',
  ],
  'leaked secrets': [
    'test/e2e/secrets.test.ts: canaries: no secret in the log',
    'test/io/observability/request-log.test.ts: without query, header or secret path',
  ],
  'secrets at rest': [
    'test/actors/accounts/user.test.ts: secrets: no row, snapshot, index, mail or audit record',
    'test/io/apps/apps.test.ts: the API key is in no other answer, event, message or audit record',
    'test/io/apps/apps.test.ts: API-key cipher: a key opens in its own cipher only',
  ],
  'DNS rebinding': [
    'test/io/http/origin.test.ts: on a loopback bind /mcp refuses a foreign Origin, every route a foreign Host',
    'test/sandbox/sandbox.test.ts: sandbox: a foreign Host is refused',
  ],
  'first administrator': ['test/io/admin/staff.test.ts: set-up link: good once'],
  'random bytes': [
    'test/io/http/front.test.ts: front: random bytes and mutated requests cause no crash',
    'test/io/routes/mcp.test.ts: envelope: random JSON and random bytes',
  ],
  'requests hidden in a chunked body': [
    'test/io/http/chunked.test.ts: chunked: a request hidden behind the body, in one segment',
    'test/io/http/chunked.test.ts: chunked: the answer arrives complete',
    'test/io/http/chunked.test.ts: chunked: the same over TLS',
    'test/io/http/chunked.test.ts: chunked: POST /mcp with a hidden call',
    'test/e2e/smuggling.test.ts: smuggling: a request hidden behind POST /mcp or an event push leaves no log line, counter or audit record',
  ],
  'requests hidden behind a refusal or a long answer': [
    'test/io/http/chunked.test.ts: chunked: no hidden request is handled after refusals by limits',
    'test/io/http/chunked.test.ts: chunked: no request is handled after a complete answer without a length',
    'test/io/http/chunked.test.ts: chunked: a hidden request is not charged',
  ],
  'chunk extensions, trailers, empty lines, bare CR': [
    'test/io/http/chunked.test.ts: chunked: extension, trailer, empty line before a request, bare CR',
    'test/io/http/chunked.test.ts: chunked: a request that is cut anywhere in its body is answered at most once',
  ],
  'a chunk extension at the last chunk': [
    'test/io/http/library.test.ts: reads an extension of the last chunk as a size of 186 bytes',
    'test/io/http/chunked.test.ts: chunked: extension, trailer, empty line before a request, bare CR',
  ],
  'bodies that are refused and go on': [
    'test/io/http/unread-body.test.ts: the flood ends, and the answer is whole',
    'test/io/http/unread-body.test.ts: slow and at full speed, sees every answer',
    'test/io/http/unread-body.test.ts: unread body: one that no route reads is awaited',
  ],
  'slow bodies': [
    'test/io/http/chunked.test.ts: minimum rate: less than 1 KiB/s over 10 s is 408',
    'test/io/proxy/bodies.test.ts: floor: a proxied body below 1 KiB/s is 408',
    'test/io/proxy/bodies.test.ts: floor: the sink hears of the end first',
    'test/io/http/front.test.ts: front: silent connects, slow heads and slow bodies',
  ],
  'a slow module, used to cut answers': [
    'test/io/proxy/bodies.test.ts: a module that takes $',
    'test/io/proxy/bodies.test.ts: a body whose last piece came while its client had to wait',
  ],
  "the parser's name in answers": ['test/io/http/chunked.test.ts: answers do not name their parser'],
  'one network or user takes all pending requests': [
    'test/io/http/front.test.ts: front: requests and bodies in flight are bounded',
    'test/io/routes/mcp.test.ts: a share of a bound used up: 429 with 1002',
  ],
  'one session, user or network takes all of a bound': [
    'test/domain/limits/bounds.test.ts: one holder at its share, another one still gets in',
  ],
  'a walk through an IPv6 /56 or /48': [
    'test/domain/limits/bounds.test.ts: no network takes all, an IPv6 /48 included',
    'test/domain/limits/bounds.test.ts: networks: IPv4 by the address, IPv6 by its /64, /56 and /48',
  ],
  'a repeated answer to a challenge': [
    'test/io/accounts/challenges.test.ts: challenge: is good exactly once',
    'test/actors/accounts/challenges.test.ts: the account refuses it still, and takes another',
    'test/actors/accounts/challenges.test.ts: of two logins at the same time that passed elsewhere',
    'test/e2e/challenges.test.ts: challenge: one issued before a SIGKILL signs up, adds a key and logs in after it, only once',
  ],
  'invented or changed challenge ids': [
    'test/domain/challenges.test.ts: every bit of the id counts',
    'test/domain/challenges.test.ts: the same id of another kind, user, session or key',
    'test/e2e/challenges.test.ts: challenge: one of another journal is 1104, even with the same account and key',
  ],
  'many challenges, to displace those of others': [
    'test/io/accounts/challenges.test.ts: challenge: a network has 1,000 open, one more is refused and none is lost',
    'test/io/accounts/challenges.test.ts: challenge: at the maximum, one more is refused',
  ],
  'all upload slots from one network': [
    'test/actors/files/upload.test.ts: upload: a network has half of the slots, over a restart too',
  ],
  'event streams of one user from many addresses': [
    'test/io/sse/front.test.ts: limits: the oldest stream of a session is replaced, an address and the node have caps',
  ],
  'many callers, to fill memory with their counters': [
    'test/domain/limits/bounds.test.ts: holders: callers that hold nothing are forgotten',
    'test/domain/limits/bounds.test.ts: holders: many addresses of one /64 are one caller',
  ],
  'unfinished bodies take all connections to a module': [
    'test/io/proxy/bodies.test.ts: shares: 156 unfinished POSTs of one account',
    'test/io/http-client/relay-queue.test.ts: relay queue: unfinished bodies take no connection',
  ],
  'one network takes all connections to a module': [
    'test/io/http-client/relay-queue.test.ts: relay queue: one network holds half of the connections',
    'test/io/http-client/relay-queue.test.ts: relay queue: any history keeps the shares',
  ],
  'provoked timeouts, to open a breaker for all': [
    'test/io/modules/breaker.test.ts: breakers: what opens one',
    'test/io/modules/breaker.test.ts: breakers: every history ends as in the model',
  ],
  'the probe of a breaker held by a slow body': [
    'test/io/modules/breaker.test.ts: breakers: the probe is one whole call',
  ],
  'others pushed out above half of the cap': [
    'test/io/http/connections.test.ts: connections: above half of the cap every answer closes, and 138 short connections',
    'test/io/http/connections.test.ts: connections: a network that only holds its connections open keeps no more',
    'test/io/http/connections.test.ts: connections: further requests of a connection that closes take nothing off',
    'test/io/http/listen/connection-shares.test.ts: connection shares: agree with a reference',
  ],
  'one address opens all connections and stays silent': [
    'test/io/http/connections.test.ts: one address opens more silent connections than the cap',
    'test/io/http/connections.test.ts: requests in flight count for their network beyond 12 s',
    'test/io/http/connections.test.ts: a trusted proxy has no share',
    'test/io/http/listen/connection-shares.test.ts: agree with a reference',
  ],
  'a walk through the /64 networks of an IPv6 /56 or /48': [
    'test/actors/limits/limiter.test.ts: a walk through IPv6 networks stops',
    'test/io/http/listen/connection-shares.test.ts: addresses of one /48 stop at its shares',
    'test/actors/runtime/audit.test.ts: a walk through the /64 of one /48',
  ],
  'endless preflights': ['test/io/http/limits.test.ts: preflights are charged to the address only'],
  'endless short connections, for a quota each': [
    'test/io/http/limits.test.ts: new connections do not help beyond the quota of the address',
    'test/actors/limits/limiter.test.ts: one connection alone has one quota, whatever its address had open',
  ],
  'a flood with a public key, to lock out its owner': [
    'test/io/accounts/network-limits.test.ts: a key flooded by name from everywhere',
    'test/io/accounts/network-limits.test.ts: signatures beyond the share of all',
  ],
  'many sessions of one user': [
    'test/actors/accounts/user.test.ts: all sessions of a user share one window',
    'test/actors/accounts/user.test.ts: windows of session and user agree with a reference',
    'test/io/accounts/accounts.test.ts: limits: sessions of one user together',
  ],
  'endless accounts': [
    'test/io/accounts/network-limits.test.ts: a network at its day is refused',
    'test/io/accounts/network-limits.test.ts: the first login with a code counts',
    'test/io/accounts/network-limits.test.ts: loopback is counted in Production alone',
  ],
  'lists for endless values of `?tools=`, to fill memory': [
    'test/io/mcp/subsets.test.ts: ?tools=: entries after the hundredth match nothing',
  ],
  'open streams of `subscriptions/listen`': [
    'test/io/mcp/list-changes.test.ts: subscriptions/listen: refusals without a filter, a session, a good bearer or room',
    'test/io/mcp/list-changes.test.ts: subscriptions/listen: ends with its session, its lifetime and its client',
  ],
  '`DELETE` of the `Mcp-Session-Id` of another account, or of invented ones': [
    'test/io/mcp/session-ids.test.ts: Mcp-Session-Id: DELETE by another account is 404',
    'test/io/mcp/session-ids.test.ts: Mcp-Session-Id: DELETE of one that was not issued here is 404',
    'test/io/mcp/session-ids.test.ts: Mcp-Session-Id: DELETE of /connect/mcp ends ids of the account',
    'test/io/mcp/node-signals.test.ts: an id that was not issued here is ended nowhere and not passed on',
    'test/e2e/cluster/clients.test.ts: an Mcp-Session-Id of one node holds at all, and is over at all',
  ],
  'a proxy that routes by `Mcp-Name`, and a body that says otherwise': [
    'test/io/mcp/stateless.test.ts: headers of 2026-07-28: a missing or another one is 400 with -32020',
  ],
  'one POST of 100 lists or calls on `/mcp`': [
    'test/io/mcp/batch.test.ts: 100 lists answer with 4 MiB at most',
    'test/io/mcp/batch.test.ts: calls behind an answer that was too large',
    'test/io/mcp/batch.test.ts: the event loop is given back',
  ],
  "one-time codes requested for another person's number": [
    'test/actors/codes/one-time-codes.test.ts: a code of the other class neither replaces nor uses up a code',
    'test/io/accounts/one-time-codes.test.ts: code: requests from elsewhere leave the code of the owner',
  ],
  'one-time codes asked for through an IPv6 /56 or /48': [
    'test/actors/codes/one-time-codes.test.ts: caps: a walk through the /64s of a /56 or /48',
  ],
  'guesses at the one-time codes of any account, all day': [
    'test/actors/codes/one-time-codes.test.ts: codes: guesses at all codes of a year find fewer than one account in five years',
    'test/actors/codes/one-time-codes.test.ts: codes: six digits of eight are neither right nor a try',
    'test/actors/codes/one-time-codes.test.ts: codes: a code of six digits from an earlier version is sent and good',
    'test/actors/codes/one-time-codes.test.ts: codes: any history of codes, tries, waits and restarts',
  ],
  "a claimed foreign key, so that its holder logs in to the attacker's account": [
    'test/io/accounts/accounts.test.ts: login: a key that was only claimed opens no session',
    'test/io/accounts/accounts.test.ts: proof beats claim: a proven registration takes the key over',
  ],
  'an agent that cannot tell whose account it uses': [
    'test/io/accounts/mcp-login.test.ts: McpBasic and McpVerified answer the shape of spec 4.2',
  ],
  'reading an account with its public key only': [
    'test/io/mcp/catalog.test.ts: without proof: public data alone, and what the configuration opens besides',
    'test/io/proxy/proxy.test.ts: proxy: without proof personal rows are out of reach by REST as they are by tool',
    'test/e2e/personal-reads.test.ts: production: a public key alone reads public data; a reload opens and closes the rest',
    'test/e2e/personal-reads.test.ts: production: a start with McpBasicPersonalReads true warns',
  ],
  'the id of an application beside the key': [
    'test/io/accounts/app-login.test.ts: McpApp: payorder_create is for a signed login alone, also over a restart',
    'test/io/accounts/app-login.test.ts: McpApp: without a signature personal reads follow McpBasicPersonalReads',
    'test/actors/accounts/user-records.test.ts: account: a session keeps that it was signed; one from before that was written proved nothing',
  ],
  'unsigned logins that displace signed sessions': [
    'test/io/accounts/app-login.test.ts: McpApp: logins without a signature neither push out signed ones nor spend their window',
  ],
  "listing an account's keys with one of them": [
    'test/io/accounts/app-login.test.ts: user_keys: a session without proof sees its own key, without name and last use',
  ],
  'a public path with a foreign key': [
    'test/io/proxy/proxy.test.ts: proxy: a public path names no account that nothing proved, where personal reads are closed',
  ],
  'raw file ids with a foreign key': [
    'test/io/routes/downloads.test.ts: v2: a session without proof and McpBasicPersonalReads false: raw ids are 403',
  ],
  'trying file ids in sequence': [
    'test/io/routes/downloads.test.ts: access: a file of others answers as one that is not there, to the byte, by both versions',
    'test/e2e/files/downloads.test.ts: chat members fetch a file; other users and former members are refused',
  ],
  'a code or token sent to another address': [
    'test/io/connect/authorize.test.ts: request: a bad client or redirect URI is shown, never redirected',
    'test/io/connect/registration.test.ts: register: bad redirect URIs are invalid_redirect_uri',
  ],
  'a code or token in a log line': [
    'test/e2e/connect/client.test.ts: connect: a dead token is refreshed and the call repeated',
  ],
  'a stolen code': [
    'test/io/connect/authorize.test.ts: request: other faults go to the redirect URI',
    'test/io/connect/life.test.ts: code: bound to client, redirect URI, PKCE verifier and resource',
    'test/io/connect/life.test.ts: code: good once for 60 s; used twice it ends what it gave',
  ],
  'a stolen refresh token': [
    'test/io/connect/refresh.test.ts: refresh: a former token 61 s after its own replacement ends the grant, with the reason',
    'test/io/connect/refresh.test.ts: refresh: a former token is of its client alone, and may be given back',
  ],
  'a copied journal and the next refresh token': [
    'test/io/connect/refresh.test.ts: refresh: a copy of the journal, with its secret, computes no token',
  ],
  'a token used at another address': [
    'test/io/connect/life.test.ts: audience: a token of /connect/mcp opens nothing elsewhere',
    'test/io/connect/life.test.ts: audience: a token of a profile lists its tools and opens its address alone',
  ],
  'consent without the person': [
    'test/io/connect/authorize.test.ts: decide: consent every time',
    'test/io/connect/authorize.test.ts: decide: the challenge is good once, for its session, its request and its own page',
    'test/io/connect/authorize.test.ts: request: other faults go to the redirect URI',
  ],
  'full access from a forgotten browser': [
    'test/io/connect/authorize.test.ts: full: only after a login of at most 15 minutes',
  ],
  'answers mixed up between servers': [
    'test/io/connect/authorize.test.ts: request: other faults go to the redirect URI',
    'test/io/connect/authorize.test.ts: decide: consent every time',
  ],
  'a client that poses as another': [
    'test/io/connect/authorize.test.ts: request: without a session step login, then consent',
    'test/io/connect/authorize.test.ts: application: private schemes, until its redirect URIs change',
  ],
  'metadata documents, to make the gateway fetch': [
    'test/io/connect/authorize.test.ts: document: fetched only for a session, once while it is cached',
    'test/io/connect/authorize.test.ts: document: redirects, sizes, other types and other contents are refused',
    'test/io/connect/authorize.test.ts: document: private addresses, other hosts and other forms of the id are not fetched',
    'test/config/oauth.test.ts: OAuth keys: documents come from loopback on a loopback listener of development alone',
    'test/io/connect/documents.test.ts: document: of fetches at once an account has two, a network a quarter of all',
  ],
  'registrations that fill the disk': ['test/io/connect/registration.test.ts: register: 201 without storage'],
  'a redirect URI that installs a program': [
    'test/io/connect/registration.test.ts: register: links of the same programs that install something are left out',
    'test/io/connect/registration.test.ts: request: a private URI is compared exactly',
    'test/domain/oauth/clients.test.ts: OAuthPrivateRedirects: a value has an authority and a plain path',
  ],
  'a package of a foreign owner under a name that pages tell people to run': [
    'test/io/web/connector.test.ts: connector: its address has the version',
    'test/tidy.test.ts: tidy: run names: no page tells people to run a name',
    'test/tidy.test.ts: tidy: run names: a planted one is found',
  ],
  'a registration that leads people to another site': [
    'test/io/connect/registration.test.ts: register: in Production loopback, known programs and OAuthClientHosts are kept',
    'test/io/connect/registration.test.ts: request: a registration that is older than the rules leads nowhere',
  ],
  'a host that was disconnected, or whose key, application or account is gone': [
    'test/io/connect/life.test.ts: ends: a grant ends with a block, its key, its application and close_sessions',
    'test/io/connect/life.test.ts: owner: sees connected hosts and ends one; another account neither',
  ],
  'kills between consent, token and refresh': [
    'test/e2e/connect/kills.test.ts: kill -9: no answered grant is lost',
  ],
};
