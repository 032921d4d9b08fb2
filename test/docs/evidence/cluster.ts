/** Tests of the parts of the state in docs/cluster.md. */
import type { Evidence } from './evidence.ts';

export const CLUSTER_PARTS: Evidence = {
  'Accounts, and names such as keys, sessions and contacts': [
    'test/actors/runtime/log/cluster-node.test.ts: a node takes commands of actors that it owns, the other one refuses them',
    'test/actors/runtime/log/cluster-node.test.ts: of two nodes that claim a name at once one gets it',
    'test/actors/runtime/log/cluster-node.test.ts: a released name is announced on every node',
    'test/actors/routed-system.test.ts: session checks are answered by the replica, of any account',
    'test/e2e/cluster/any-node.test.ts: of sign-ups with one key at three nodes one succeeds',
  ],
  'Uploads and drafts': [
    'test/io/files/upload/recovery.test.ts: a node checks the uploads of its partitions alone',
    'test/domain/partitions.test.ts: uploads and drafts live with their account',
    'test/e2e/cluster/any-node.test.ts: routes of files, events, streams and webhooks are 503 with 1018',
  ],
  'Applications and their delivery logs': [
    'test/domain/partitions.test.ts: delivery logs with their application',
    'test/e2e/cluster/any-node.test.ts: access of an application is granted, used and revoked at different nodes',
  ],
  'Single actors: registries of codes and uploads, settings, staff': [
    'test/e2e/cluster/removed-keys.test.ts: a setting changed at one node is in force at the others',
    'test/e2e/cluster/removed-keys.test.ts: a role given or taken away at one node holds at the others',
    'test/e2e/cluster/any-node.test.ts: a one-time code of one node logs in at another, once',
  ],
  'Challenges, one-time codes and capability codes': [
    'test/e2e/cluster/any-node.test.ts: a challenge of one node is answered at another, once',
    'test/e2e/cluster/clients.test.ts: capability codes of one node open the same at all',
  ],
  'Live settings and roles': [
    'test/actors/runtime/log/listeners.test.ts: a change is in force at every node, the owner too, before its answer',
  ],
  'Set-up link': [
    'test/io/admin/nodes.test.ts: the link of one node is good at any, once',
    'test/bootstrap/ownership.test.ts: the owner of the staff alone has one',
    'test/e2e/cluster/admin.test.ts: the set-up link of one node makes the first admin at another',
  ],
  'Secrets that the first start makes': [
    'test/actors/runtime/log/shared-rows.test.ts: of two nodes that seal data keys anew at once both use those of one',
    'test/actors/runtime/log/cluster-node.test.ts: of two nodes that store a first value at once both read the same one',
  ],
  Ids: [
    'test/actors/runtime/id-generator.test.ts: those of a node are above what it has applied of others',
    'test/actors/runtime/log/cluster-node.test.ts: ids of an actor rise over a takeover by a node with a slower clock',
  ],
  'Order of a session and the closing of its application': [
    'test/actors/accounts/app-sessions.test.ts: a session that is older than the opening by another clock is valid',
    'test/actors/accounts/app-sessions.test.ts: a session that is younger than the closing by another clock is over at once',
    'test/actors/accounts/app-sessions.test.ts: accounts of version 6: McpApp sessions and grants are served',
  ],
  'Messages and timers': [
    'test/actors/runtime/log/cluster-node.test.ts: a message to an actor of another node is delivered there, once',
    'test/actors/runtime/log/cluster-node.test.ts: a timer fires at the owner alone',
    'test/actors/runtime/log/cluster-node.test.ts: actors, mail and timers of a node that leaves are at the other one',
    'test/actors/runtime/timers.test.ts: a node that is no member reads none',
  ],
  'Queries that read settings': [
    'test/actors/routed-system.test.ts: the rest is handled by its owner',
    'test/actors/routed-system.test.ts: an answer waits until this node has applied what it says, a query does not',
    'test/e2e/cluster/any-node.test.ts: sessions and log-ins of an account are the same list at every node',
  ],
  'Idle end of sessions': [
    'test/actors/accounts/idle-sessions.test.ts: a use that another node has not written down yet may keep it open',
  ],
  'Cancelled calls and ended MCP sessions': [
    'test/io/mcp/node-signals.test.ts: a cancellation that reaches another node stops the call where it runs',
    'test/io/mcp/node-signals.test.ts: an Mcp-Session-Id that was ended at one node is 404 at the other',
    'test/e2e/cluster/clients.test.ts: a call at one node is cancelled by a message to another',
  ],
  'Audit records of turns': [
    'test/actors/runtime/log/shared-rows.test.ts: audit records of turns are trimmed by one node, at both',
    'test/actors/runtime/log/shared-rows.test.ts: a trim that was waiting while another node trimmed does nothing',
    'test/actors/runtime/log/cluster-simulation.test.ts: each node trims audit records by itself',
  ],
  'Audit records of calls': [
    'test/e2e/cluster/audit.test.ts: every node shows the calls of all, also of a node that was killed',
    'test/e2e/cluster/audit.test.ts: a page of the other node is asked for over the link',
    'test/bootstrap/cluster-state.test.ts: without the records of that node alone',
  ],
  'Dead letters and failed actors': [
    'test/io/admin/nodes.test.ts: an actor that fails at its owner is shown and reset by the panel of any node',
    'test/io/admin/nodes.test.ts: a skip is done at the owner, and its dead letter is removed from any node',
  ],
  'Log of events, its inbox and its feeds': [
    'test/actors/events/log.test.ts: a node that is not the owner refuses events and releases none',
    'test/actors/events/log.test.ts: only its owner removes events',
    'test/actors/runtime/log/judge.test.ts: rows of a partition are those of its owner at that position',
  ],
  'Webhooks and their checkpoints': [
    'test/io/webhooks/ownership.test.ts: each partition has a checkpoint, and its next owner reads the log from there on',
    'test/actors/runtime/log/shared-rows.test.ts: a value of a partition is written by its owner alone',
  ],
  'Health, metrics and live figures': [
    'test/e2e/cluster/admin.test.ts: live figures of another node and of all come through the panel of any',
    'test/e2e/cluster/health.test.ts: both pages, the metrics and the commands show the place in the cluster',
  ],
  Configuration: [
    'test/e2e/cluster/health.test.ts: another configuration at the start is warned of by all nodes',
    'test/e2e/cluster/admin.test.ts: a reload at one node reaches all',
  ],
};
