/** Sentences of the contract without a check of the client: gaps, evidence of other tests, and introductions. */
import type { Citation, Gap, OtherTest } from './check.ts';

export const GAPS: readonly Gap[] = [
  {
    section: '8.1',
    sentence: 'Connection | id of the connection',
    gap: 'The transport does not identify a connection. All connections of one address share a pool of N quotas, where N counts the connections that it opened in this window or already had, closed ones included ([0105](decisions/0105-limits-are-counted-by-one-object-and-told-to-all-nodes.md#rate-limiter-a-synchronous-object-a-quota-for-each-opened-connection)). One connection alone stops at 10, and one request on each of 25 passes, but a busy connection may use the quotas of the others. The reported limit is that of one connection; the address scope bounds all of them. So it is with Node 20 and with glibc below 2.38; where the transport names the port of the peer (Node 22 and later with glibc 2.38), a connection has exactly one quota, and `r` is its true remainder. Behind a trusted proxy only the address scope counts.',
  },
  {
    section: '8.1',
    sentence: 'A request above it is answered with 429 and code 1002.',
    gap: 'With `Cluster`, nodes tell each other within 100 ms what they counted. A caller that spreads over N nodes at a steady rate gets up to 1.06 of a quota of 1,500; in a burst within 100 ms, or while links between nodes are cut, up to N quotas ([cluster.md](cluster.md#limits)).',
  },
  {
    section: '6.2',
    sentence: 'The order of delivery is the order of ticks.',
    gap: 'Each event of a module waits 500 ms for events with older ticks from other modules (`EventReorderMilliseconds`; 0 gives the order of arrival at once). A later one is delivered next and counted.',
  },
  {
    section: 'Intro',
    sentence: 'a gateway for authentication and reverse proxying, placed in front of backend modules.',
    gap: 'With `Cluster`, files need a place that all nodes reach; uploads of accounts whose node has another folder are 503 with 1036 ([cluster.md](cluster.md#files)).',
  },
  {
    section: '2.7',
    sentence: 'The chunks are buffered in memory.',
    gap: 'Chunks are stored in files until the upload is complete, so that an upload survives a restart. Memory holds the parts that are arriving.',
  },
  {
    section: '4.7',
    sentence: 'An id always works for users who are authenticated;',
    gap: 'With `McpBasicPersonalReads: false`, the default in production, a session that did not prove its key (McpBasic, McpApp without a signature) gets 403 with 1103: a public key is no secret, and ids of files can be guessed ([0011](decisions/0011-sessions-are-parallel-and-only-their-hashes-are-kept.md#unproven-sessions-public-data-only)). With true it is accepted, and the chat module is asked.',
  },
];

/** Sentences of standards that the HTTP library does not meet and the gateway cannot. */
export const STANDARD_GAPS = [
  {
    standard: 'RFC 9110 10.1.1',
    sentence:
      'An origin server MUST send either an immediate response with a final status code, if that status can be determined by examining just the method, target URI, and header section, or an immediate 100 (Continue) response.',
    gap: 'uWebSockets.js answers the exact `Expect: 100-continue` with 100 before any handler sees the head, so a refusal that the head shows, as 404 for an upload to an unknown draft, follows that 100. Any other case of the word, such as `100-Continue`, gets 100 when the body is wanted, and a refusal alone.',
  },
  {
    standard: 'RFC 9112 7.1.1',
    sentence: 'A recipient MUST ignore unrecognized chunk extensions.',
    gap: 'uWebSockets.js reads an extension as digits of the size: the last chunk `0;a` has 186 bytes. No byte of the extension reaches the gateway, so it cannot refuse the request at once. It waits for the rest of the body and answers 408 below the minimum rate; the connection carries no further request ([0090](decisions/0090-odd-connections-and-unread-bodies-end.md#chunked-requests-and-proxy-protocol-no-further-request)). Common clients send no extensions.',
  },
  {
    standard: 'RFC 9112 7.1.2',
    sentence:
      'A recipient that removes the chunked coding MAY selectively retain or discard the received trailer fields.',
    gap: 'uWebSockets.js reads trailers as the head of another request. A request that announces them with `Trailer` gets 501 (1032) before its module is called; where head and trailers arrive in one packet, and for trailers that no `Trailer` announces, the library writes its own 505 in HTML and closes. nginx in front removes trailers: `proxy_request_buffering on;` (its default) sends the body with a length.',
  },
  {
    standard: 'RFC 9112 3.2.2, 2.2',
    sentence:
      'A server MUST accept the absolute-form in requests; a server SHOULD ignore at least one empty line before the request-line.',
    gap: 'uWebSockets.js answers 505 in HTML to the absolute form and closes the connection at an empty line; no handler sees either. Clients send the absolute form to forward proxies alone. nginx and HAProxy in front rewrite both.',
  },
  {
    standard: 'RFC 9110 5.5',
    sentence:
      'A recipient SHOULD treat other allowed octets in field content (i.e., obs-text) as opaque data.',
    gap: 'UTF-8 inside the value of a field passes; other bytes above ASCII are 400 in a proxied request. uWebSockets.js removes such bytes at either end of a value, as it does with blanks.',
  },
  {
    standard: 'RFC 6455 7.4.2',
    sentence:
      'Status codes in the range 3000-3999 are reserved for use by libraries, frameworks, and applications.',
    gap: 'uWebSockets.js takes a close frame of a client with a code from 1012 to 3999 for a faulty one, and answers without a code. The module gets a close frame without code and reason. Codes of modules pass; those from 4000 to 4999 pass in both directions.',
  },
  {
    standard: 'RFC 6455 7.1.7',
    sentence:
      'An endpoint SHOULD send a Close frame with an appropriate status code before it closes a faulty connection.',
    gap: 'uWebSockets.js closes the connection of a client at a faulty frame, and at a message above 2 MiB, without a close frame. The module sees a cut connection.',
  },
];

export const OTHER_TESTS: readonly OtherTest[] = [
  {
    section: '2.2',
    sentence:
      'The record of a key has: id, user id of the owner, public key (Ed25519, 32 bytes), for FIDO2 the public key in CBOR, … and a bitmask of flags.',
    shows: 'the records of software keys are correct after any history of keys, blocks and restarts',
    test: ['test/actors/accounts/user-model.test.ts', 'account: any history of keys'],
  },
  {
    section: '2.2',
    sentence: 'The flags are PasswordKey, UserKey, Fido2Key, McpAccess, CardDav, Deleted.',
    shows: 'six bits have these names and determine the type of a key',
    test: ['test/domain/tables.test.ts', 'keys: six flag bits by the names of spec 2.2'],
  },
  {
    section: '2.2',
    sentence: 'Enrollment of a FIDO2 key stores the credential id and the attested key in CBOR.',
    shows: 'after restarts keys are found by credential id and their logins verify with the kept key',
    test: ['test/io/accounts/passkeys.test.ts', 'passkeys: any history of enrollments'],
  },
  {
    section: '2.2',
    sentence: 'For a software key the Ed25519 public key is all that is stored.',
    shows: 'logins verify after any history of keys and restarts, with public keys only',
    test: ['test/actors/accounts/user-model.test.ts', 'account: any history of keys'],
  },
  {
    section: '2.3',
    sentence: 'Must be HTTPS in production.',
    shows: 'plain http is accepted only outside production',
    test: ['test/domain/webhooks/target.test.ts', 'plain http only without production'],
  },
  {
    section: '2.8',
    sentence: 'timestampDriftTolerance | Tolerated clock drift in milliseconds.',
    shows: 'a challenge is valid until its expiry plus the tolerance, and not a millisecond longer',
    test: ['test/io/accounts/challenges.test.ts', 'challenge: is taken until its end and the leeway'],
  },
  {
    section: '3',
    sentence: 'The chat has a pending file message. Buffer space is reserved.',
    shows: 'message and slot exist before the answer; a failed step releases both',
    test: ['test/actors/files/upload.test.ts', 'upload: a failing step of init gives everything back'],
  },
  {
    section: '3',
    sentence: 'v1 upload | open | no activity | | expired | It is removed before another upload is taken.',
    shows: 'an inactive upload ends, and an expired one releases its slot on demand',
    test: ['test/actors/files/upload.test.ts', 'upload: past its time it is gone before its timer has run'],
  },
  {
    section: '3',
    sentence: 'v2 draft | (none) | create_draft | | pending | The chat has a pending file message.',
    shows: 'the chat module has the pending message when the draft is pending',
    test: [
      'test/actors/files/draft.test.ts',
      'draft: pending, receiving, complete: published before the message',
    ],
  },
  {
    section: '7.2',
    sentence: '401 | Account not found | The account of the key does not exist',
    shows: 'a known key whose account is missing',
    test: [
      'test/io/accounts/mcp-login.test.ts',
      'mcp_login: a key whose account is missing is Account not found',
    ],
  },
  {
    section: '8.2',
    sentence: 'A configurable string is its key,',
    shows: 'the key determines which transfers share a quota',
    test: ['test/io/files/throttle.test.ts', 'the key decides which streams share'],
  },
  {
    section: '8.3',
    sentence: 'An upload without activity expires.',
    shows: 'an upload without a chunk for this time ends; a stored chunk restarts the time',
    test: ['test/actors/files/upload.test.ts', 'upload: inactive ones expire'],
  },
  {
    section: '8.4',
    sentence: 'The clock drift tolerated for FIDO2: configured in milliseconds.',
    shows: 'a challenge is valid until its expiry plus the tolerance, and not a millisecond longer',
    test: ['test/io/accounts/challenges.test.ts', 'challenge: is taken until its end and the leeway'],
  },
];

/** Sentences that only introduce or refer to others. */
export const INTRODUCTIONS: readonly Citation[] = [
  {
    section: 'Intro',
    sentence:
      'Gatehouse is … This page specifies the MCP endpoint, keys and login, file transport, webhooks, rate and bandwidth limits, health routes, and the configuration that belongs to the interface. … Conventions:',
  },
  {
    section: '2.3',
    sentence:
      'Further state of an application: McpEnabled (it may be used by McpApp logins), its approval status, the counters success_count and failed_count of deliveries, and last_tick, the cursor at the last event that was delivered.',
  },
  {
    section: '2.4',
    sentence: 'For example, currency is an optional string argument of wallet_get_balance (a currency code).',
  },
  { section: '4.3', sentence: 'Rules below … Left open … Rules of register_key:' },
  { section: '5.1', sentence: 'Signature of McpVerified:' },
  { section: '5.3', sentence: 'Key types:' },
  { section: '6.2', sentence: 'For each application,' },
];
