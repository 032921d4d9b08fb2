/** Tests of docs/SECURITY.md: audit, transport, files, storage, and faults. */
import type { Evidence } from './evidence.ts';

export const ATTACKS_ON_DATA: Evidence = {
  'tool calls that push other records out of the audit log': [
    'test/actors/runtime/audit.test.ts: audit: calls push out calls alone',
    'test/actors/runtime/journal/contract.test.ts: audit records of one ring never push out those of another',
    'test/actors/runtime/journal/contract.test.ts: audit records without a ring are read in order, and age out',
    'test/actors/runtime/audit.test.ts: records of versions without rings go after AuditDays',
  ],
  'a foreign link to enroll an agent': [
    'test/e2e/pages/enroll.test.ts: the link of an agent leads through the sign-up, and its letters allow the key',
    'test/e2e/pages/enroll.test.ts: a link without a whole key says so and sends nothing',
    'test/e2e/pages/admin-keys.test.ts: added by the link of an agent',
  ],
  'a program that asks for more than the person wants to give': [
    'test/io/connect/scopes.test.ts: consent: full access needs a login of 15 minutes by what is chosen, not by what is asked',
    'test/e2e/pages/connect.test.ts: connect: full access wants a login of the last 15 minutes and shows every tool',
  ],
  'a click meant for another window on the consent': [
    'test/e2e/pages/connect.test.ts: a page in the background takes no answer',
  ],
  'a program that takes the name of another': [
    'test/e2e/pages/connect.test.ts: a sign-up and a consent lead back to the host',
    'test/e2e/pages/connect.test.ts: a refusal leads back with access_denied and no code',
    'test/e2e/pages/connect.test.ts: markup in a name is shown as text',
  ],
  'a wrong client or redirect': [
    'test/e2e/pages/connect.test.ts: a wrong client, redirect or resource is an error page that leads nowhere',
  ],
  'the key of an agent in a browser': [
    'test/io/accounts/mcp-keys.test.ts: register_key makes a key that may only use MCP, with a proof too',
    'test/io/accounts/mcp-keys.test.ts: an owner changes it only within 15 minutes of a login',
  ],
  "an admin's key in another person's account": [
    'test/io/admin/keys.test.ts: an added key is a claim that logs in an agent and no browser',
  ],
  'a support member or viewer who changes keys': [
    'test/io/admin/keys.test.ts: changes are for admins with a fresh login',
  ],
  'a key search without match in 100,000 accounts': [
    'test/io/admin/keys.test.ts: a page looks at 1,000 accounts, 50 at a time',
  ],
  'an audit filter without match in a million records': [
    'test/io/admin/audit.test.ts: a filter that matches nothing looks at 20,000 records',
    'test/io/admin/audit.test.ts: other work runs between the slices',
  ],
  'a chosen `X-Request-Id` that hides requests behind one id': [
    'test/io/http/pipeline.test.ts: pipeline: the gateway makes the request id',
    'test/io/mcp/call.test.ts: X-Request-Id is kept beside ours, and no module sees it',
    "test/actors/runtime/audit.test.ts: refused logins and key changes keep the caller's X-Request-Id",
  ],
  'a key removed by mistake': [
    'test/e2e/pages/admin-keys.test.ts: Nothing is sent before it is saved; Escape discards the choice',
    'test/e2e/pages/admin-keys.test.ts: admin keys: searched, added, changed and removed in the panel',
  ],
  "a role changed by mistake, or one's own": [
    'test/e2e/pages/admin.test.ts: admin: the set-up link makes an admin once, and every page',
    'test/io/admin/staff.test.ts: staff: an admin cannot change the role of the own account',
  ],
  'a tool called by mistake from a page': [
    'test/e2e/pages/home.test.ts: home: a tool that is not read-only asks first',
  ],
  'path parameters (`/chat/v1/files;x/create`, `%3B`, `..;x`) that hide or change a path': [
    'test/io/proxy/proxy.test.ts: path parameters neither hide a path for the gateway alone nor make another path',
    'test/io/modules/endpoint.test.ts: proxied path: passes unchanged, or is refused when ambiguous',
  ],
  'the admin panel through an untrusted proxy in `Admin.allow`': [
    'test/config/exposure.test.ts: admin: behind an untrusted proxy every request is refused',
  ],
  'an `X-Forwarded-For` of a trusted proxy that cannot be read': [
    'test/config/exposure.test.ts: admin: a client that a trusted proxy names unreadably is refused',
  ],
  'demo money or addresses without TLS in production': [
    'test/config/exposure.test.ts: production: a BaseUrl that is not https is a fault',
    'test/config/exposure.test.ts: production: a sandbox without --sandbox ends the start',
  ],
  '`X-Accel` from a client, to learn paths or to fetch files without the gateway': [
    'test/io/files/download/handed-over.test.ts: handed over: the field counts from a trusted proxy alone, once and not empty',
    'test/io/files/download/handed-over.test.ts: handed over: no route and no module sees the field of the proxy',
    'test/io/files/download/handed-over.test.ts: handed over: the internal location is 404 for clients, also with dots in the path',
  ],
  'a PROXY protocol header of a client': [
    'test/io/http/listen/proxy-protocol.test.ts: an unexpected header closes the connection, and nothing runs',
  ],
  'a second PROXY protocol header from a client behind a forwarding proxy': [
    'test/io/http/listen/proxy-protocol.test.ts: a client adds no header to the one of its proxy, whatever the answer is',
  ],
  'DNS rebinding of the internal listener': [
    'test/e2e/transport.test.ts: internal listener: a Host name that external DNS could resolve is 403 with 1103',
  ],
  'recorded TLS traffic and a key that leaks later': [
    'test/e2e/transport.test.ts: TLS: version 1.3, and 1.2 only with forward secrecy',
  ],
  'an expired certificate with open connections, or an invalid new one': [
    'test/e2e/transport.test.ts: TLS: SIGHUP serves a new certificate, keeps open connections and loses no new one',
    'test/io/http/handover.test.ts: connections that wait to be accepted when the first listener stops are served',
  ],
  'a downgrade to plain HTTP': [
    'test/e2e/transport.test.ts: HSTS: sent on every answer in production with TLS of its own, and never otherwise',
  ],
  'a stolen backup': [
    'test/io/apps/apps.test.ts: API-key cipher: with a seal key the journal alone opens no API key',
    'test/e2e/seal-key.test.ts: a journal sealed under a key is served with that key alone',
  ],
  'a changed package of the lock file': [
    'test/tidy.test.ts: every entry of the lock has its integrity, but those that the registry does not serve',
  ],
  'install scripts of packages, one of which reports each installation': [
    'test/tidy.test.ts: tidy: packages with an install script are those that run without it',
  ],
  'a published fault of a package': [
    'test/packaging/advisories.test.ts: advisories: one for a package of a run ends the gate',
    'test/packaging/advisories.test.ts: advisories: one for a package of development ends the gate',
    'test/packaging/advisories.test.ts: advisories: a registry that answers no audits is named and skipped',
    'test/packaging/advisories.test.ts: advisories: an allowed one passes while a package has it',
    'test/packaging/advisories.test.ts: advisories: the fault of a command and a text of another kind',
  ],
  'a fault in a package, found after a release': [
    'test/packaging/sbom.test.ts: sbom: lists every package that npm installs for a run',
    'test/packaging/sbom.test.ts: sbom: has what CycloneDX 1.6 requires',
    'test/packaging/sbom.test.ts: sbom: prepack writes it into the package',
    'test/e2e/package.test.ts: package: holds the built program, pages and manuals',
  ],
  'many streams of one user': [
    'test/io/files/throttle-persons.test.ts: streams of one user get no more than one of another',
    'test/io/files/throttle-persons.test.ts: without a session a network is one caller, an IPv6 network with all its addresses',
    'test/io/files/throttle-persons.test.ts: slow streams of a user take nothing from the share of its fast one',
  ],
  'many users with one short stream each': [
    'test/io/files/throttle-persons.test.ts: users without a stream are removed, whatever their number',
  ],
  'a second gateway on the same data folder, also in another network namespace': [
    'test/e2e/damaged-journal.test.ts: two gateways on one folder: one in another network namespace is refused',
  ],
  'a request for an admin link by another user of the machine': [
    'test/bootstrap/admin-recovery.test.ts: admin recovery: a file that others could have written is refused and removed',
  ],
  'two writers without a working lock': [
    'test/actors/runtime/journal/durability.test.ts: durability: two writers without a lock',
  ],
  'a journal cut, emptied, foreign or overwritten': [
    'test/e2e/damaged-journal.test.ts: damaged journal: a start on a damaged header ends with 70 and one sentence',
  ],
  'a meta page with another commit than its rows, which the engine would believe': [
    'test/e2e/damaged-journal.test.ts: damaged journal: a start on a damaged header ends with 70 and one sentence',
    'test/e2e/damaged-journal.test.ts: behind a wrong number of the older meta page the newest commit comes back',
  ],
  'a folder without its journal': [
    'test/e2e/damaged-journal.test.ts: missing journal: a start needs --new-journal, which is refused with 64 if the journal is present',
  ],
  'a row changed by a bad disk': [
    'test/actors/runtime/journal/damaged-rows.test.ts: row: any flipped bit of a turn is found, wherever in the row it is',
    'test/actors/runtime/journal/damaged-rows.test.ts: row: one that is stored under the key of another is found',
  ],
  'a key that a bad disk changed, so that a session or name is absent': [
    'test/actors/runtime/journal/background-walk.test.ts: walk: where a key was hit its row is damaged, not absent',
    'test/actors/runtime/journal/background-walk.test.ts: walk: an actor whose last turn has a key that was hit',
    'test/e2e/journal/damaged-pages.test.ts: a session whose name in the index was hit is 503, not 401',
  ],
  'a backup or restore that was cut off, or a journal of another backup in its place': [
    'test/e2e/journal/copies.test.ts: backup: one that is killed leaves no journal, or a whole one with its receipt',
    'test/e2e/journal/copies.test.ts: restore: after one that is killed no start makes an empty journal',
    'test/e2e/journal/copies.test.ts: receipt: a journal of another backup in its place is refused',
  ],
  'damaged pages of the engine': [
    'test/e2e/journal/damages.test.ts: damages: check finds each',
    'test/e2e/journal/damages.test.ts: a start after a crash ends with 70 and one sentence',
    'test/e2e/journal/damaged-pages.test.ts: ends the run with 70 and one line, and no start follows',
    'test/e2e/check.test.ts: check: no zeroed page changes what is read without a finding',
    'test/e2e/check.test.ts: check: no flipped bit changes what is read without a finding',
    'test/e2e/check.test.ts: start after a crash: pages are verified first; a damaged page ends the start with one sentence, not a signal',
  ],
  'Random histories of actors with crashes, damaged rows, cut files and a second owner': [
    'test/actors/runtime/simulation.test.ts: runtime: keeps every promise in simulated histories',
    'test/actors/runtime/simulation.test.ts: simulation: catches',
  ],
  '`kill -9` at random moments': [
    'test/e2e/kill-loop.test.ts: kill -9 loop: every acknowledged write',
    'test/actors/runtime/journal/durability.test.ts: whatever was acknowledged before kill -9 is there',
    'test/e2e/modules.test.ts: kill -9 while agents pay',
  ],
  '`kill -9` during a v1 upload': [
    'test/e2e/files/upload-kills.test.ts: kill -9 loop of uploads: each file is complete or absent, its message consistent, its slot free',
    'test/actors/files/upload.test.ts: a crash before every call, and after it',
    'test/actors/files/upload-recovery.test.ts: a kill takes no acknowledged chunk, nor does a second kill',
  ],
  'A late write of bytes that a v1 upload has replaced': [
    'test/io/files/upload/v1-parts.test.ts: a chunk again with other bytes replaces the former; no late write is published',
    'test/io/files/storage/storage.test.ts: a copy of a part is published whole, or not at all',
    'test/actors/files/upload-model.test.ts: uploads: any history ends as in the reference',
  ],
  '`kill -9` during a v2 upload': [
    'test/e2e/files/drafts.test.ts: kill -9 loop: every upload is complete or resumable after each kill',
    'test/actors/files/draft.test.ts: a crash after the last byte, at any step',
  ],
  'A power cut during v1 uploads at any system call': [
    'test/io/files/upload/power-cut.test.ts: uploads: a kill at any system call takes no chunk',
    'test/io/files/upload/power-cut.test.ts: uploads: after a power cut at any system call files are whole',
    'test/io/files/upload/power-cut.test.ts: uploads: kills without the tables',
    'test/io/files/upload/power-cut.test.ts: uploads: power cuts with syncs that do nothing',
  ],
  'A power cut at any system call': [
    'test/actors/runtime/journal/power-cut.test.ts: power cut: whatever was acknowledged is there',
    'test/actors/runtime/journal/power-cut.test.ts: catches an acknowledgement before the commit',
    'test/actors/runtime/journal/power-cut.test.ts: catches syncs that do nothing',
    'test/actors/runtime/journal/traced-disk.test.ts: disk: a synced write is sure',
  ],
  'A disk that fails or hangs': [
    'test/actors/runtime/lifecycle.test.ts: journal lost: every waiter gets 503',
    'test/actors/runtime/lifecycle.test.ts: journal lost: a commit that takes over 10 s',
    'test/actors/runtime/lifecycle.test.ts: journal: a commit survives a suspension of the process',
    'test/actors/runtime/journal/durability.test.ts: an fdatasync that fails ends the run with 70',
    'test/actors/runtime/bounds.test.ts: a full journal refuses growth',
    'test/actors/runtime/journal/contract.test.ts: over 70 % of the quota it is full',
  ],
  'A module that hangs, cuts its answer or is down': [
    'test/io/modules/client.test.ts: an answer cut in half is ModuleFailed',
    'test/e2e/modules.test.ts: module slow: -32000',
    'test/e2e/modules.test.ts: answer cut off: the agent repeats the transfer',
  ],
  'Starts and restarts': [
    'test/e2e/start.test.ts: start: both ports refuse connections until the program prints that it listens, and then serve',
    'test/e2e/restarts.test.ts: restarts: 50 plain EventSource clients reconnect after a stop and after a kill -9',
    'test/e2e/descriptors.test.ts: descriptors: /health is 200 on an open connection when no descriptor is left',
  ],
  'The sandbox crashes': [
    'test/sandbox/supervisor.test.ts: a sandbox that ended serves again at the same address',
    'test/sandbox/supervisor.test.ts: waits grow to a minute',
  ],
  'A file storage that is full, read-only, gone, slow or wrong': [
    'test/io/files/storage/remote.test.ts: every failure is 1312 for the caller and names the server',
    'test/io/files/upload/receiver.test.ts: a full disk is StorageFull',
    'test/io/files/storage/storage.test.ts: reservations: they add up',
    'test/bootstrap/files.test.ts: a folder that cannot be made or written names its key',
  ],
  'A worker thread that dies, a full queue': [
    'test/workers/pool.test.ts: deaths under load fail the tasks alone that cause them',
    'test/workers/pool.test.ts: a full queue refuses with Overloaded',
  ],
  'All threads stand still, a sync that hangs at a stop': [
    'test/e2e/observability/standing-threads.test.ts: standstill: all threads stand still: log-ins are answered',
    'test/e2e/observability/standing-threads.test.ts: standstill: a stop ends in 20 s with 70',
  ],
  'A worker thread that stands still': [
    'test/workers/standstill.test.ts: pool: a thread that stands still is replaced after 5 s and its tasks run again',
    'test/workers/standstill.test.ts: a task that holds a file is late at a replacement',
  ],
  'A clock that goes back': [
    'test/actors/runtime/lifecycle.test.ts: ids: stay unique over a restart with the clock set back',
    'test/domain/ids.test.ts: TickSource: rises strictly',
  ],
  'Any history of keys, logins, blocks and restarts': [
    'test/actors/accounts/user-model.test.ts: account: any history of keys',
    'test/io/accounts/passkeys.test.ts: passkeys: any history',
    'test/actors/accounts/user.test.ts: any history of uses, waits and restarts',
  ],
  'Any history of applications, approvals, grants and restarts': [
    'test/actors/apps/app-model.test.ts: applications: any history',
  ],
  'Any history of v1 uploads, with faults, time and crashes': [
    'test/actors/files/upload-model.test.ts: uploads: any history ends as in the reference',
    'test/actors/files/upload-model.test.ts: uploads: whatever is cut off by a crash, in the end',
  ],
  'Any history of v2 uploads, with takeovers, faults, time and crashes': [
    'test/actors/files/draft-model.test.ts: draft: agrees with the reference',
  ],
  'A stop during a stream': [
    'test/e2e/files/drafts.test.ts: a stop ends a stream at its counted bytes, and the upload resumes there after the restart',
  ],
  'Any traffic': ['test/actors/limits/limiter.test.ts: limiter: agrees with a reference model'],
  'Random input of parsers': [
    'test/io/mcp/rpc.test.ts: readRpc: agrees with JSON.parse on mutated bodies',
    'test/domain/ids.test.ts: decodeBase64url: takes exactly',
    'test/domain/ids.test.ts: parseId: decimal int64',
    'test/io/http/parsers.test.ts: a query reads as URLSearchParams does',
    'test/io/http/parsers.test.ts: X-Forwarded-For names an address',
  ],
  'Random `Range` and conditional fields, random file names': [
    'test/domain/files/preconditions.test.ts: ranges: random fields are read within the file, and never throw',
    'test/domain/files/preconditions.test.ts: conditions: random fields are judged, and never throw',
    'test/domain/files/files.test.ts: file names: random ones never throw',
  ],
  'Ten minutes of mixed load (`npm run soak -- mixed`)': [
    'test/bench/mixed.test.ts: mixed run: every kind at its rate',
    'test/bench/mixed.test.ts: soak mixed: missed',
  ],
  "A fleet's day with `kill -9` in the middle (`npm run soak -- fleet`)": [
    'test/e2e/files/fleet.test.ts: fleet: uploads, ranges, streams and applications survive kill -9',
    'test/e2e/files/fleet.test.ts: fleet: a changed byte of a stored file is found',
    'test/e2e/files/fleet.test.ts: fleet: events that are lost, doubled or out of order are found',
  ],
  'A backup restored into an empty folder': [
    'test/e2e/program.test.ts: a backup restored into an empty folder',
    'test/actors/runtime/journal/contract.test.ts: a backup opens and holds what was committed',
  ],
  'A journal of an earlier version': [
    'test/actors/runtime/journal/durability.test.ts: golden journal: what version 1 wrote opens',
  ],
};
