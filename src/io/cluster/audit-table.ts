/**
 * Audit records of no turn in the database: batches of one ring, compressed and sealed, each with the times of its first
 * and last record. A node numbers its batches; pages merge those of all nodes. Each ring has a bound, as in a journal.
 */
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import {
  BATCH_SPAN_MS,
  type CallBatch,
  type PackedCall,
  unpackCall,
} from '../../actors/runtime/audit/batches.ts';
import type { CallTable } from '../../actors/runtime/audit/table.ts';
import { AUDIT_RINGS, type AuditRing } from '../../domain/audit.ts';
import { MINUTE_MS } from '../../domain/time.ts';
import { Database, type DatabaseRow } from './database.ts';
import { Sealer, SealUnopened } from './seal.ts';

/** Names a record of the table: pages are in this order. */
export interface CallKey {
  readonly timeMs: number;
  readonly node: number;
  /** Number of the record at its node. */
  readonly seq: number;
}

interface StoredCall extends CallKey {
  readonly ring: AuditRing;
  /** Undefined for a batch that cannot be read. */
  readonly record: unknown;
}

/** A number of a record is that of its batch and its place in it. */
const PLACES = 4_096;
/** A batch that inflates to more was not written by a node. */
const BATCH_BYTES_MAX = 64 * 1024 * 1024;
/** Batches that one question answers. */
const BATCHES_AT_ONCE = 256;
/** Time of a record as a double, and length of its row. */
const HEADER_BYTES = 12;
const LAST = Number.MAX_SAFE_INTEGER;
const NODE_LAST = 32_767;

const compress = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

/** No row: the number is taken. */
const INSERT = {
  name: 'audit_insert',
  text: `insert into gatehouse.audit (node, seq, ring, from_ms, to_ms, rows, body) values ($1, $2, $3, $4, $5, $6, $7)
    on conflict do nothing returning seq`,
};
const BODY = {
  name: 'audit_body',
  text: 'select body from gatehouse.audit where node = $1 and seq = $2',
};
/** Numbered by the database, so that a node continues after a restart. */
const NEWEST = {
  name: 'audit_last',
  text: 'select coalesce(max(seq), 0) as seq from gatehouse.audit where node = $1',
};
/**
 * Batches of the rings $5 that may hold records at or before $4, before the batch of $1 to $3, the newest first: as many as
 * hold $6 records.
 */
const BEFORE = {
  name: 'audit_before',
  text: `select node, seq, ring, to_ms, body from
    (select *, sum(rows) over (order by to_ms desc, node desc, seq desc) - rows as newer from
      (select * from gatehouse.audit
        where (to_ms, node, seq) < ($1::bigint, $2::int, $3::bigint) and from_ms <= $4::bigint and ring = any ($5::text[])
        order by to_ms desc, node desc, seq desc limit ${BATCHES_AT_ONCE}) found) counted
    where newer < $6::bigint order by to_ms desc, node desc, seq desc`,
};
const TRIM = {
  name: 'audit_trim',
  text: `delete from gatehouse.audit where ring = $1::text and (to_ms < $2::bigint or (node, seq) in
    (select node, seq from (select node, seq, sum(rows) over (order by to_ms desc, node desc, seq desc) - rows as newer
      from gatehouse.audit where ring = $1::text) counted where newer >= $3::bigint))`,
};

interface AuditTableOptions {
  readonly url: string;
  /** Secrets of `Cluster.secret`. */
  readonly secrets: readonly Uint8Array[];
  readonly node: () => number;
}

/** A batch under its number, as it is tried until the database has it. */
interface SealedBatch {
  readonly node: number;
  readonly seq: number;
  readonly body: Buffer;
}

export class AuditTable implements CallTable {
  readonly #node: () => number;
  readonly #sealer: Sealer;
  /** A page does not delay what is awaited. */
  readonly #writes: Database;
  readonly #reads: Database;
  readonly #sealed = new WeakMap<CallBatch, SealedBatch>();
  /** Newest number of this process. */
  #newest: number | undefined;

  constructor({ url, secrets, node }: AuditTableOptions) {
    this.#node = node;
    this.#sealer = new Sealer(secrets, 'audit');
    this.#writes = new Database({ url, applicationName: 'gatehouse audit' });
    this.#reads = new Database({
      url,
      applicationName: 'gatehouse audit pages',
      statementTimeoutMs: MINUTE_MS,
    });
  }

  /** Rejects with `DatabaseFailure`. */
  async store(batch: CallBatch): Promise<void> {
    const { ring, records } = batch;
    const [fromMs, toMs] = [Math.floor(records[0]?.timeMs ?? 0), Math.ceil(records.at(-1)?.timeMs ?? 0)];
    for (;;) {
      const { node, seq, body } = this.#sealed.get(batch) ?? (await this.#seal(batch));
      const values = [node, seq, ring, fromMs, toMs, records.length, body];
      if ((await this.#writes.run(INSERT, values)).rows.length > 0) return;
      const stored = (await this.#writes.run(BODY, [node, seq])).rows[0]?.['body'];
      // The answer of an earlier attempt was lost.
      if (stored !== undefined && body.equals(stored as Buffer)) return;
      // A process that had this node's number before took the number of the batch.
      this.#sealed.delete(batch);
      this.#newest = undefined;
    }
  }

  async #seal(batch: CallBatch): Promise<SealedBatch> {
    const text = await compress(encode(batch.records));
    const node = this.#node();
    this.#newest ??= Number((await this.#writes.run(NEWEST, [node])).rows[0]?.['seq']);
    this.#newest += 1;
    const seq = this.#newest;
    const sealed = { node, seq, body: this.#sealer.seal(text, associatedOf(node, seq)) };
    this.#sealed.set(batch, sealed);
    return sealed;
  }

  /** Records of some rings before a key, or the newest ones, the newest first. A batch that cannot be read is one. */
  async before(
    key: CallKey | undefined,
    limit: number,
    rings: readonly AuditRing[] = AUDIT_RINGS,
  ): Promise<readonly StoredCall[]> {
    const untilMs = key === undefined ? LAST : Math.ceil(key.timeMs);
    let [toMs, node, seq] = [Math.min(LAST, untilMs + BATCH_SPAN_MS), NODE_LAST, LAST];
    for (let found: StoredCall[] = []; ; ) {
      const { rows } = await this.#reads.run(BEFORE, [toMs, node, seq, untilMs, rings, limit]);
      for (const row of rows) {
        const records = await this.#recordsOf(row);
        found.push(...records.filter((record) => key === undefined || compare(record, key) < 0));
      }
      found = found.sort((a, b) => compare(b, a)).slice(0, limit);
      const last = rows.at(-1);
      if (last === undefined) return found;
      [toMs, node, seq] = [Number(last['to_ms']), Number(last['node']), Number(last['seq'])];
      const oldestMs = found.length < limit ? Number.NEGATIVE_INFINITY : (found.at(-1)?.timeMs ?? 0);
      // Later batches end before the oldest record of the page.
      if (toMs < oldestMs) return found;
    }
  }

  async #recordsOf(row: DatabaseRow): Promise<StoredCall[]> {
    const [node, batch] = [Number(row['node']), Number(row['seq'])];
    const ring = row['ring'] as AuditRing;
    try {
      const text = this.#sealer.open(row['body'] as Buffer, associatedOf(node, batch));
      const bytes = await inflate(text, { maxOutputLength: BATCH_BYTES_MAX });
      return decode(bytes).map((call, index) => ({ ...call, node, seq: batch * PLACES + index, ring }));
    } catch (error) {
      if (!(error instanceof SealUnopened || error instanceof RangeError)) throw error;
      return [{ timeMs: Number(row['to_ms']), node, seq: batch * PLACES, ring, record: undefined }];
    }
  }

  /** Removes batches of a ring whose last record is older, and the oldest that are not needed for `rowsMax` records. */
  async trim(ring: AuditRing, beforeMs: number, rowsMax: number): Promise<void> {
    await this.#reads.run(TRIM, [ring, Math.floor(beforeMs), rowsMax]);
  }

  close(): void {
    this.#writes.close();
    this.#reads.close();
  }
}

const associatedOf = (node: number, seq: number) => Buffer.from(`${node}/${seq}`);

function compare(a: CallKey, b: CallKey): number {
  return a.timeMs - b.timeMs || a.node - b.node || a.seq - b.seq;
}

function encode(records: readonly PackedCall[]): Buffer {
  const parts = records.flatMap(({ timeMs, row }) => {
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeDoubleBE(timeMs);
    header.writeUInt32BE(row.length, 8);
    return [header, row];
  });
  return Buffer.concat(parts);
}

/** Throws RangeError for bytes of another form. */
function decode(bytes: Buffer): { readonly timeMs: number; readonly record: unknown }[] {
  const calls: { timeMs: number; record: unknown }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + HEADER_BYTES + bytes.readUInt32BE(at + 8);
    if (end > bytes.length) throw new RangeError('an audit batch ends within a record');
    const record = unpackCall(bytes.subarray(at + HEADER_BYTES, end));
    calls.push({ timeMs: bytes.readDoubleBE(at), record });
    at = end;
  }
  return calls;
}
