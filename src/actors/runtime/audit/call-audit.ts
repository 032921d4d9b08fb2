/** Audit records that belong to no turn, such as those of tool calls. A cluster keeps them apart from its log (local.ts, table.ts). */

import type { NodeRing } from '../../../domain/audit.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { AuditRecord } from '../actor.ts';
import type { GroupCommit } from '../group-commit.ts';
import { type Journal, type Operation, ofNoActor } from '../journal/port.ts';
import { auditOperation } from './operation.ts';

export interface CallAudit {
  /** Not awaited. A record that cannot be written is dropped and counted. Throws TypeError when it cannot be stored. */
  write(record: AuditRecord): void;
  /** Resolves when the record is durable, for what must leave a trace before it happens. Rejects when full. */
  writeFirst(record: AuditRecord): Promise<void>;
  /** Removes so many of the oldest records of a ring of this node; resolves when they are gone. */
  trim?(ring: NodeRing, rows: number): Promise<void>;
  /** Resolves when all that was written is durable. */
  finish(): Promise<void>;
  readonly dropped: number;
}

/** Writes that wait for the disk; beyond it records are dropped and counted. */
export const BACKLOG_MAX = 20_000;
/** Longest wait of a record that is not awaited, where records are gathered in batches. Milliseconds. */
export const RECORD_WAIT_MS = 50;

interface JournalCallAuditDeps {
  readonly journal: Pick<Journal, 'pack' | 'sizeBytes'>;
  readonly commit: Pick<GroupCommit, 'failed' | 'backlog' | 'add' | 'wroteUnawaited'>;
  /** Rows that belong to no actor, in one group; resolves when they are on disk. */
  readonly write: (operations: readonly Operation[], sizeBytes: number) => Promise<unknown>;
}

/** Puts the records into the next group of the journal. */
export class JournalCallAudit implements CallAudit {
  readonly #deps: JournalCallAuditDeps;
  dropped = 0;

  constructor(deps: JournalCallAuditDeps) {
    this.#deps = deps;
  }

  write(record: AuditRecord): void {
    const { commit } = this.#deps;
    if (commit.failed || commit.backlog >= BACKLOG_MAX) {
      this.dropped += 1;
      return;
    }
    const { operation, sizeBytes } = this.#packed(record);
    commit.add(ofNoActor([operation]));
    commit.wroteUnawaited(1, sizeBytes);
  }

  async writeFirst(record: AuditRecord): Promise<void> {
    const { commit, write } = this.#deps;
    if (commit.failed) throw new GatewayError('JournalUnavailable');
    if (commit.backlog >= BACKLOG_MAX) throw new GatewayError('Overloaded');
    const { operation, sizeBytes } = this.#packed(record);
    await write([operation], sizeBytes);
  }

  /** They are in groups of the journal, whose end waits for these. */
  async finish(): Promise<void> {}

  #packed(record: AuditRecord): { operation: Operation; sizeBytes: number } {
    const { journal } = this.#deps;
    let sizeBytes = 0;
    const operation = auditOperation(record, (value) => {
      const row = journal.pack(value);
      sizeBytes = journal.sizeBytes(row);
      return row;
    });
    return { operation, sizeBytes };
  }
}
