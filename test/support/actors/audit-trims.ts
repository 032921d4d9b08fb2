/** Trims of the audit log in a simulated history: the records that all nodes have stay the same at all, and no young one goes. */
import { isDeepStrictEqual } from 'node:util';
import { SHARED_RINGS } from '../../../src/domain/audit.ts';
import type { RuntimeProcess } from './cluster-runtime.ts';
import type { SimulatedProcess } from './simulated-cluster.ts';

/** Records that are younger stay. */
const KEPT_MS = 700;
const ROWS_MAX = 10_000;

interface RecordedOperation {
  readonly askedMs: number;
  readonly acknowledged: boolean;
  readonly command: { readonly type: string };
}

export class AuditTrims {
  #beforeMs = Number.NEGATIVE_INFINITY;

  /** Trims like nodes, which do so once a minute. */
  trim(processes: readonly SimulatedProcess<RuntimeProcess>[], nowMs: number): void {
    this.#beforeMs = nowMs - KEPT_MS;
    for (const { app, paused } of processes) if (paused === undefined) app.trimAudit(this.#beforeMs);
  }

  /** The promise that was not kept, or undefined. */
  verdict(
    processes: readonly SimulatedProcess<RuntimeProcess>[],
    asked: readonly RecordedOperation[],
  ): string | undefined {
    const records = processes.map(({ app }) => recordsOf(app));
    const differing = records.findIndex((each) => !isDeepStrictEqual(each, records[0]));
    if (differing >= 0) return `${processes[differing]?.name} has other audit records`;
    const operations = (records[0] ?? []).map(
      (record) => (record as { fields: { operation: number } }).fields.operation,
    );
    if (new Set(operations).size < operations.length) return 'the audit log has a record twice';
    const recorded = new Set(operations);
    const lost = asked.findIndex(
      ({ acknowledged, askedMs, command }, index) =>
        acknowledged && command.type !== 'queue' && askedMs >= this.#beforeMs && !recorded.has(index + 1),
    );
    return lost < 0 ? undefined : `the audit record of ${lost + 1} is lost`;
  }
}

function recordsOf({ cluster }: RuntimeProcess): readonly unknown[] {
  return cluster.journal.auditPage(0, ROWS_MAX, SHARED_RINGS).map(({ record }) => record);
}
