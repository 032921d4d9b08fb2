/** The audit log of a node of a cluster: where records of calls go, and pages over those of all nodes. */

import type { CallAudit } from '../../actors/runtime/audit/call-audit.ts';
import { LocalCallAudit } from '../../actors/runtime/audit/local.ts';
import { TableCallAudit } from '../../actors/runtime/audit/table.ts';
import type { DiskJournal } from '../../actors/runtime/journal/lmdb.ts';
import type { ClusterNode } from '../../actors/runtime/replication/cluster-node.ts';
import { nodeSchedule } from '../../actors/runtime/runtime-context.ts';
import { AUDIT_RINGS, auditRowsMax } from '../../domain/audit.ts';
import type { ClusterConfiguration } from '../../domain/config/configuration.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { DAY_MS } from '../../domain/time.ts';
import type { AuditLog } from '../admin/audit.ts';
import { type AuditCluster, auditPage } from '../admin/audit-pages.ts';
import type { Log } from '../observability/log.ts';
import { AuditTable } from './audit-table.ts';
import type { PeerLinks } from './peers.ts';
import type { PgLog } from './pg-log.ts';
import type { Verbs } from './rpc.ts';

/** Verbs that other nodes may call about the audit log. */
export const AUDIT_VERBS = ['auditPage'] as const;

export interface ClusterAudit {
  readonly calls: CallAudit;
  readonly pages: AuditCluster;
  /** Answers other nodes that show pages of this one. */
  verbs(log: AuditLog): Verbs;
  /** Removes what is beyond the bounds, for all nodes. */
  trim(): Promise<void>;
  close(): void;
}

interface ClusterAuditDeps {
  readonly parts: ClusterNode;
  readonly pgLog: PgLog;
  readonly links: PeerLinks;
  readonly journal: DiskJournal;
  readonly settings: SettingsReader;
  readonly secrets: readonly Uint8Array[];
  readonly log: Log;
}

export function openClusterAudit(cluster: ClusterConfiguration, deps: ClusterAuditDeps): ClusterAudit {
  const { parts, journal, settings, secrets, log } = deps;
  const { name } = cluster;
  const local = new LocalCallAudit({
    node: name,
    pack: (value) => journal.pack(value),
    store: (operations) => parts.replica.writeLocal(operations),
    schedule: nodeSchedule,
  });
  const options = { url: cluster.url, secrets, node: () => parts.node.node };
  const table = cluster.audit === 'table' ? new AuditTable(options) : undefined;
  const pages = pagesOf(name, table, deps);
  return {
    calls:
      table === undefined
        ? local
        : new TableCallAudit({
            node: name,
            table,
            local,
            schedule: nodeSchedule,
            onShortage(error) {
              if (error === undefined) log.write('auditTableBack');
              else log.write('auditTableAway', { err: error });
            },
          }),
    pages,
    verbs: (auditLog) => ({
      auditPage: (query) => auditPage({ log: auditLog, cluster: pages }, query as object),
    }),
    async trim() {
      const beforeMs = Date.now() - settings.get('AuditDays') * DAY_MS;
      for (const ring of AUDIT_RINGS) await table?.trim(ring, beforeMs, auditRowsMax(settings, ring));
    },
    close: () => table?.close(),
  };
}

function pagesOf(
  node: string,
  calls: AuditTable | undefined,
  { pgLog, links }: ClusterAuditDeps,
): AuditCluster {
  const joined = async () => (await pgLog.nodes()).filter((each) => each.joined);
  return {
    node,
    calls,
    nodes: async () => (await joined()).map((each) => each.name),
    async pageOf(name, query) {
      const other = (await joined()).find((each) => each.name === name);
      if (other === undefined) throw new GatewayError('NotFound', 'no such node is in');
      const reply = await links.call(other.node, 'auditPage', query);
      if ('error' in reply) throw reply.error;
      return reply.value;
    },
  };
}
