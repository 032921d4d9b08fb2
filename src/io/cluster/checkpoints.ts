/**
 * Checkpoints in the database: the compact copy of a replica as of a position, in compressed and sealed rows of a mebibyte.
 * A node that joins fetches the newest one and the rows of the log after it.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { deflateRaw, inflateRaw } from 'node:zlib';
import type { DigestSample } from '../../actors/runtime/replication/port.ts';
import { MINUTE_MS } from '../../domain/time.ts';
import { asText, bytesOf, Database } from './database.ts';
import { ClusterUnusable, DatabaseFailure, SQL_STATE } from './failures.ts';
import { sampleOf } from './node-table.ts';
import { Sealer, SealUnopened } from './seal.ts';

export interface ReplicaCheckpoint {
  readonly position: number;
  readonly parts: number;
  /** Age by the clock of the database. */
  readonly ageMs: number;
  /** Digest of the node that stored it, as of the last position that nodes compare. */
  readonly sample?: DigestSample | undefined;
}

const PART_BYTES = 1024 * 1024;
/** Parts of one answer of a download: most shrink to a third. */
const PARTS_AT_ONCE = 8;
/** The fastest: higher levels take twice the time for 4 % fewer bytes. */
const DEFLATE_LEVEL = 1;
const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);
const STATEMENT_TIMEOUT_MS = MINUTE_MS;
/** A checkpoint that another one replaces stays so long, for nodes that are fetching it. */
const REPLACED_MS = 10 * MINUTE_MS;

const INSERT = {
  name: 'checkpoint_part',
  text: 'insert into gatehouse.checkpoint (pos, part, parts, sha256, body, digest_pos, digest) values ($1, $2, $3, $4, $5, $6, $7)',
};
const NEWEST = {
  name: 'newest_checkpoint',
  text: `select pos, parts, digest_pos, digest, (extract(epoch from clock_timestamp() - max(at)) * 1000)::bigint as age_ms
    from gatehouse.checkpoint group by pos, parts, digest_pos, digest having count(*) = parts order by pos desc limit 1`,
};
const REMOVE = { name: 'remove_checkpoint', text: 'delete from gatehouse.checkpoint where pos = $1' };
const REACHES = { name: 'log_reaches', text: 'select 1 as found from gatehouse.log where pos = $1::bigint' };
const LOG_AFTER = {
  name: 'log_after',
  text: `select coalesce(max(pos), $1::bigint) as pos, coalesce(sum(octet_length(body)), 0)::bigint as bytes
    from gatehouse.log where pos > $1::bigint`,
};
const PARTS = {
  name: 'checkpoint_parts',
  text: `select part, sha256, ${asText('body')} as body from gatehouse.checkpoint
    where pos = $1 and part >= $2 and part < $2::int + ${PARTS_AT_ONCE} order by part`,
};
/** Those before the newest complete one, and unfinished ones, once they are old. */
const TRIM = {
  name: 'trim_checkpoints',
  text: `with complete as (select pos from gatehouse.checkpoint group by pos, parts having count(*) = parts),
    old as (select pos from gatehouse.checkpoint group by pos
      having max(at) < clock_timestamp() - $1::bigint * interval '1 millisecond')
    delete from gatehouse.checkpoint where pos in (select pos from old)
      and (pos not in (select pos from complete) or pos < (select max(pos) from complete))`,
};

export class Checkpoints {
  readonly #database: Database;
  readonly #secrets: readonly Uint8Array[];

  /** `secrets`: of `Cluster.secret`. */
  constructor({ url, secrets }: { readonly url: string; readonly secrets: readonly Uint8Array[] }) {
    this.#secrets = secrets;
    this.#database = new Database({
      url,
      applicationName: 'gatehouse checkpoints',
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    });
  }

  /** The newest complete one. */
  async newest(): Promise<ReplicaCheckpoint | undefined> {
    const [row] = (await this.#database.run(NEWEST)).rows;
    if (row === undefined) return undefined;
    const [position, parts, ageMs] = ['pos', 'parts', 'age_ms'].map((name) => Number(row[name]));
    return { position, parts, ageMs, sample: sampleOf(row) } as ReplicaCheckpoint;
  }

  /** True if the row at a position, or row 1 for position 0, is in the log. */
  async reachesBackTo(position: number): Promise<boolean> {
    const { rows } = await this.#database.run(REACHES, [Math.max(1, position)]);
    return rows.length > 0;
  }

  /** Bytes of the log after a position, and its newest position. */
  async logAfter(after: number): Promise<{ readonly position: number; readonly bytes: number }> {
    const [row] = (await this.#database.run(LOG_AFTER, [after])).rows;
    return { position: Number(row?.['pos']), bytes: Number(row?.['bytes']) };
  }

  /**
   * Stores the file, which nothing changes meanwhile, as the checkpoint at a position. False when another node stores one
   * at the same position. Rejects with `DatabaseFailure`: what was stored is then no complete checkpoint.
   */
  async upload(position: number, file: string, sample?: DigestSample): Promise<boolean> {
    const sealer = this.#sealerOf(position);
    const { sha256, bytes } = await digestOf(file);
    const parts = Math.max(1, Math.ceil(bytes / PART_BYTES));
    const source = await open(file, 'r');
    try {
      for (let part = 0; part < parts; part += 1) {
        const text = await deflate(await readPart(source, part), {
          level: DEFLATE_LEVEL,
          chunkSize: PART_BYTES,
        });
        const body = sealer.seal(text, associatedOf(position, part, parts, sha256));
        const values = [position, part, parts, sha256, body, sample?.position, sample?.digest];
        await this.#database.run(INSERT, values);
      }
      return true;
    } catch (error) {
      if (error instanceof DatabaseFailure && error.sqlState === SQL_STATE.unique) return false;
      throw error;
    } finally {
      await source.close();
    }
  }

  /**
   * Writes the file of a checkpoint, which is on disk when this resolves. Rejects with `ClusterUnusable` when a part is
   * missing or was changed; no file is left then.
   */
  async download(
    { position, parts }: Pick<ReplicaCheckpoint, 'position' | 'parts'>,
    file: string,
  ): Promise<void> {
    const partial = `${file}.part`;
    const target = await open(partial, 'w', 0o600);
    try {
      await this.#write(position, parts, target);
      await target.sync();
      await target.close();
      await rename(partial, file);
    } catch (error) {
      await target.close().catch(() => undefined);
      await rm(partial, { force: true });
      throw error;
    }
  }

  async #write(position: number, parts: number, target: FileHandle): Promise<void> {
    const sealer = this.#sealerOf(position);
    const hash = createHash('sha256');
    let expected: Uint8Array = Buffer.alloc(0);
    const partsFrom = (part: number) => {
      const answer = this.#database.run(PARTS, [position, part]);
      // Its failure is found where it is awaited.
      answer.catch(() => undefined);
      return answer;
    };
    let coming = partsFrom(0);
    for (let next = 0; next < parts; ) {
      const { rows } = await coming;
      // The next parts are on their way while these are opened.
      if (next + rows.length < parts) coming = partsFrom(next + rows.length);
      if (rows.length === 0) throw new ClusterUnusable(`part ${next} of the checkpoint ${position} is gone`);
      for (const row of rows) {
        if (Number(row['part']) !== next)
          throw new ClusterUnusable(`part ${next} of the checkpoint ${position} is gone`);
        expected = row['sha256'] as Buffer;
        const text = await openPart(
          sealer,
          bytesOf(row['body']),
          associatedOf(position, next, parts, expected),
        );
        if (text === undefined)
          throw new ClusterUnusable(
            `part ${next} of the checkpoint ${position} was changed, or is sealed with a secret that Cluster.secret does not list`,
          );
        hash.update(text);
        await target.write(text);
        next += 1;
      }
    }
    if (!hash.digest().equals(expected))
      throw new ClusterUnusable(`the checkpoint ${position} is not the file that was stored`);
  }

  async remove(position: number): Promise<void> {
    await this.#database.run(REMOVE, [position]);
  }

  /** Removes checkpoints that a newer one replaces, and unfinished ones. */
  async trim(olderThanMs = REPLACED_MS): Promise<void> {
    await this.#database.run(TRIM, [olderThanMs]);
  }

  close(): void {
    this.#database.close();
  }

  #sealerOf(position: number): Sealer {
    return new Sealer(this.#secrets, `checkpoint/${position}`);
  }
}

function associatedOf(position: number, part: number, parts: number, sha256: Uint8Array): Buffer {
  return Buffer.from(`${position}/${part}/${parts}/${Buffer.from(sha256).toString('hex')}`);
}

async function openPart(sealer: Sealer, sealed: Buffer, place: Buffer): Promise<Buffer | undefined> {
  try {
    return await inflate(sealer.open(sealed, place), { maxOutputLength: PART_BYTES, chunkSize: PART_BYTES });
  } catch (error) {
    if (error instanceof SealUnopened) return undefined;
    throw error;
  }
}

async function digestOf(file: string): Promise<{ sha256: Buffer; bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { sha256: hash.digest(), bytes };
}

/** A whole part; fewer bytes at the end of the file. */
async function readPart(source: FileHandle, part: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(PART_BYTES);
  let filled = 0;
  while (filled < PART_BYTES) {
    const position = part * PART_BYTES + filled;
    const { bytesRead } = await source.read(buffer, filled, PART_BYTES - filled, position);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
