/**
 * Audit records of calls in the database: batches of at most 4,000, compressed and sealed, each with the times of its first
 * and last record. A node numbers its batches; pages merge those of all nodes.
 */
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import { Database, type DatabaseRow } from './database.ts';
import { DatabaseFailure, SQL_STATE } from './failures.ts';
import { Sealer, SealUnopened } from './seal.ts';

interface AuditTableRecord {
  readonly timeMs: number;
  /** In the form of the journal. */
  readonly row: Uint8Array;
}

/** Names a record of the table: pages are in this order. */
export interface AuditTableKey {
  readonly timeMs: number;
  readonly node: number;
  readonly batch: number;
  readonly index: number;
}

type StoredAuditRecord = AuditTableKey & Pick<AuditTableRecord, 'row'>;

export const BATCH_RECORDS_MAX = 4_000;
/** A batch that inflates to more was not written by a node. */
const BATCH_BYTES_MAX = 64 * 1024 * 1024;
/** Batches that one question answers. */
const BATCHES_AT_ONCE = 8;
/** Time of a record as a double, and length of its row. */
const HEADER_BYTES = 12;

const compress = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

/** Numbered by the database, so that a node continues after a restart. */
const INSERT = {
  name: 'audit_insert',
  text: 'insert into gatehouse.audit (node, seq, from_ms, to_ms, rows, body) values ($1, $2, $3, $4, $5, $6)',
};
const LAST = {
  name: 'audit_last',
  text: 'select coalesce(max(seq), 0) as seq from gatehouse.audit where node = $1',
};
/** Batches that may hold records at or before a time, the newest first. */
const BEFORE = {
  name: 'audit_before',
  text: `select node, seq, from_ms, to_ms, body from gatehouse.audit
    where from_ms <= $1::bigint order by to_ms desc, node desc, seq desc limit ${BATCHES_AT_ONCE} offset $2`,
};
const TRIM = { name: 'audit_trim', text: 'delete from gatehouse.audit where to_ms < $1::bigint' };

interface AuditTableOptions {
  readonly url: string;
  /** Of `Cluster.secret`. */
  readonly secrets: readonly Uint8Array[];
}

export class AuditTable {
  readonly #database: Database;
  readonly #sealer: Sealer;
  /** Of this process, by node. */
  readonly #last = new Map<number, number>();

  constructor({ url, secrets }: AuditTableOptions) {
    this.#sealer = new Sealer(secrets, 'audit');
    this.#database = new Database({ url, applicationName: 'gatehouse audit' });
  }

  /**
   * Stores records of this node in one row; on disk when it resolves. After a lost answer the same records may be stored
   * again by the caller. Rejects with `DatabaseFailure`.
   */
  async append(node: number, records: readonly AuditTableRecord[]): Promise<void> {
    if (records.length === 0) return;
    if (records.length > BATCH_RECORDS_MAX) throw new RangeError('too many audit records for one batch');
    const text = await compress(encode(records));
    const times = records.map(({ timeMs }) => timeMs);
    const [from, to] = [Math.floor(Math.min(...times)), Math.ceil(Math.max(...times))];
    for (;;) {
      const seq = (this.#last.get(node) ?? (await this.#lastOf(node))) + 1;
      this.#last.set(node, seq);
      try {
        const body = this.#sealer.seal(text, placeOf(node, seq));
        await this.#database.run(INSERT, [node, seq, from, to, records.length, body]);
        return;
      } catch (error) {
        this.#last.delete(node);
        // A process that had this node's number before took the number of the batch.
        if (!(error instanceof DatabaseFailure && error.sqlState === SQL_STATE.unique)) throw error;
      }
    }
  }

  async #lastOf(node: number): Promise<number> {
    return Number((await this.#database.run(LAST, [node])).rows[0]?.['seq']);
  }

  /** Records before a key, or the newest ones, the newest first. Batches that cannot be opened are counted. */
  async before(
    key: AuditTableKey | undefined,
    limit: number,
  ): Promise<{ readonly records: readonly StoredAuditRecord[]; readonly damaged: number }> {
    const untilMs = key === undefined ? Number.MAX_SAFE_INTEGER : Math.ceil(key.timeMs);
    let found: StoredAuditRecord[] = [];
    let damaged = 0;
    for (let offset = 0; ; offset += BATCHES_AT_ONCE) {
      const { rows } = await this.#database.run(BEFORE, [untilMs, offset]);
      for (const row of rows) {
        const records = await this.#recordsOf(row);
        if (records === undefined) damaged += 1;
        else found.push(...records.filter((record) => key === undefined || compare(record, key) < 0));
      }
      found = found.sort((a, b) => compare(b, a)).slice(0, limit);
      const oldestMs = found.length < limit ? Number.NEGATIVE_INFINITY : (found.at(-1)?.timeMs ?? 0);
      // Later batches end before the oldest record of the page.
      const isComplete = rows.length < BATCHES_AT_ONCE || Number(rows.at(-1)?.['to_ms']) < oldestMs;
      if (isComplete) return { records: found, damaged };
    }
  }

  async #recordsOf(row: DatabaseRow): Promise<StoredAuditRecord[] | undefined> {
    const [node, batch] = [Number(row['node']), Number(row['seq'])];
    try {
      const text = this.#sealer.open(row['body'] as Buffer, placeOf(node, batch));
      const bytes = await inflate(text, { maxOutputLength: BATCH_BYTES_MAX });
      return decode(bytes).map((record, index) => ({ ...record, node, batch, index }));
    } catch (error) {
      if (error instanceof SealUnopened || error instanceof RangeError) return undefined;
      throw error;
    }
  }

  /** Removes batches whose last record is older. */
  async trim(beforeMs: number): Promise<void> {
    await this.#database.run(TRIM, [Math.floor(beforeMs)]);
  }

  close(): void {
    this.#database.close();
  }
}

const placeOf = (node: number, seq: number) => Buffer.from(`${node}/${seq}`);

function compare(a: AuditTableKey, b: AuditTableKey): number {
  return a.timeMs - b.timeMs || a.node - b.node || a.batch - b.batch || a.index - b.index;
}

function encode(records: readonly AuditTableRecord[]): Buffer {
  const parts = records.flatMap(({ timeMs, row }) => {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeDoubleBE(timeMs);
    header.writeUInt32BE(row.length, 8);
    return [header, row];
  });
  return Buffer.concat(parts);
}

/** Throws RangeError for bytes of another form. */
function decode(bytes: Buffer): AuditTableRecord[] {
  const records: AuditTableRecord[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + HEADER_BYTES + bytes.readUInt32BE(at + 8);
    if (end > bytes.length) throw new RangeError('an audit batch ends within a record');
    records.push({ timeMs: bytes.readDoubleBE(at), row: bytes.subarray(at + HEADER_BYTES, end) });
    at = end;
  }
  return records;
}
