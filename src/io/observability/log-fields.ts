/** The fields of log lines: type and meaning of each, declared once (log-lines.ts). */
import type { Fault } from '../../domain/schema.ts';

export interface FieldTypes {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
  readonly strings: readonly string[];
  /** Path and message of each fault. */
  readonly faults: readonly Fault[];
  /** Written as `type`, `message` and `stack`. */
  readonly error: unknown;
}

const field = <const Type extends keyof FieldTypes>(type: Type, meaning: string) => ({ type, meaning });

/** A field has one type and one meaning in all lines. */
export const LOG_FIELDS = {
  appId: field('string', 'Application.'),
  attempt: field('number', 'Attempt of a webhook, counted from 1 for each `webhookId`.'),
  cause: field(
    'string',
    'Of a journal that was set aside. `behind`: the log no longer reaches back to it. `unsynced`: the machine stopped while it was open. `diverged`: other nodes, or the checkpoint, have another state.',
  ),
  chunksLost: field('number', 'Parts of uploads whose bytes are gone; clients send them again.'),
  chunksFound: field(
    'number',
    'Parts of uploads that the journal did not know yet; clients need not send them again.',
  ),
  clean: field('boolean', 'The run before ended by a stop.'),
  clientAddress: field('string', 'Address of the client, behind trusted proxies.'),
  clientRequestId: field('string', 'The `X-Request-Id` of the caller.'),
  clockOffsetMs: field('number', 'Clock of the database minus that of this machine. Milliseconds.'),
  command: field('string', 'Command that an actor handled.'),
  connectionsMax: field('number', 'Setting `ConnectionsMax`.'),
  cursor: field('string', 'Position in the event feed of a module.'),
  descriptorLimit: field('number', 'Open files that the system allows the process.'),
  detail: field('string', 'Text for the operator.'),
  direction: field('string', 'Which node opened a link: `out` this one, `in` the other.'),
  drainMs: field('number', 'Milliseconds that requests had to end.'),
  durationMs: field('number', 'Milliseconds, to the microsecond.'),
  err: field('error', 'Error: `type`, `message`, `stack`.'),
  error: field('string', 'Name of the error code.'),
  events: field('number', 'Events in the body.'),
  failure: field(
    'string',
    'Why there was no answer: `blocked_address`, `unresolved`, `unreachable`, `timed_out`, `broken`.',
  ),
  failures: field('number', 'Failures in a row.'),
  faults: field('faults', 'What is wrong, each with `path` and `message`.'),
  findings: field('number', 'Damaged rows and pages.'),
  firstEventId: field('string', 'First event of the body, as in the event stream.'),
  folder: field('string', 'Folder that holds it.'),
  host: field('string', 'Host and port, without path and query.'),
  id: field('string', 'Id of the actor.'),
  limitMs: field('number', 'Milliseconds until the process ends whatever hangs.'),
  key: field('string', 'Key of the row in the journal, or number of the page.'),
  keys: field('strings', 'Keys of the configuration.'),
  kind: field('string', 'Kind of the actor.'),
  lastEventId: field('string', 'Last event of the body, as in the event stream.'),
  method: field('string', 'HTTP method.'),
  module: field('string', 'Module.'),
  node: field('number', 'Node of the cluster.'),
  nodes: field('strings', 'Names of nodes of the cluster.'),
  nextTry: field('string', 'Time of the next attempt, ISO 8601 in UTC; absent: none is planned.'),
  outcome: field(
    'string',
    'Result of a webhook attempt: `delivered`, `rejected` (400, 413, 422), `gone` (410), `blocked` (anything else).',
  ),
  parts: field('strings', 'Parts that stand still: `workers` verify signatures, `files` write file bytes.'),
  partsSwept: field('number', 'Files of uploads that no upload owned, removed.'),
  path: field('string', 'Path without query; secrets are masked by the parameter of the route.'),
  position: field('number', 'Row of the log of the cluster.'),
  reason: field(
    'string',
    'Of links. `unreachable`: no connection. `plain`: TLS is missing. `late`: no handshake in 2 s. `full`: too many handshakes. `secret`, `log`, `layout`, `node`, `incarnation`, `format`: the handshake shows another one. `frame`: not the protocol. `silent`: no heartbeat in 3 s. `closed`: by the other side. `replaced`: by a newer link of the node. `stopped`: on purpose.',
  ),
  requestId: field('string', 'Id of the request, as in the answer.'),
  requests: field('number', 'Requests and streams.'),
  responseBytes: field('number', 'Bytes of the answer body.'),
  profile: field('string', 'File of a profile.'),
  rows: field('number', 'Rows of the journal.'),
  route: field('string', 'Pattern of the route.'),
  tool: field('string', 'Tool or resource that was called; may be empty.'),
  server: field('string', 'Name of another MCP server in the configuration.'),
  signal: field('string', 'Signal of the operating system.'),
  source: field('string', 'Origin of a webhook attempt: `live`, `resend`, `ping`.'),
  spans: field('number', 'Spans of traces.'),
  sqlState: field('string', 'Code of the refusal (PostgreSQL, appendix A).'),
  state: field('string', 'State of the webhook after the attempt.'),
  status: field('number', 'HTTP status; of a request 0: no answer was sent.'),
  table: field('string', 'Table of the journal.'),
  tools: field('number', 'Tools that are served.'),
  traceparent: field('string', 'W3C Trace Context: of the caller, or of the span of a sampled request.'),
  transfers: field('number', 'Transfers of files in parts.'),
  type: field('string', 'Type of the event.'),
  uploads: field('number', 'Uploads that an earlier run left open.'),
  userAgent: field('string', 'The `User-Agent` of the caller.'),
  userId: field('string', 'Account.'),
  version: field('string', 'Version of a library.'),
  waitMs: field('number', 'Milliseconds until the next start.'),
  webhookAllow: field('strings', 'Networks of `WebhookAllow`.'),
  webhookId: field('string', 'Id of the delivery; the same in all its attempts.'),
} as const;
