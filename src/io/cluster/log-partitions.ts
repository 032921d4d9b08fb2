/**
 * Partitions of the log, a million positions each: made half a million positions ahead, and dropped when nothing needs their
 * rows. No append waits: partitions are attached when they are ready, and detached concurrently.
 */
import { HOUR_MS, MINUTE_MS } from '../../domain/time.ts';
import { Database, type DatabaseRow } from './database.ts';
import { PARTITION_ROWS } from './pg-schema.ts';

interface LogPartitionsOptions {
  readonly url: string;
  /** `Cluster.logHours`. */
  readonly keepHours: number;
  /** Bytes of the log that stay at least, together with those of the last hours. */
  readonly keepBytes?: number;
}

/** Changes of one round, by number of partition. */
interface PartitionChanges {
  readonly made: readonly number[];
  readonly dropped: readonly number[];
}

const AHEAD_ROWS = PARTITION_ROWS / 2;
const KEEP_BYTES = 4 * 1024 ** 3;
/** A detachment waits for statements that use the partition. */
const STATEMENT_TIMEOUT_MS = MINUTE_MS;

const LIST = {
  name: 'partitions',
  text: `select substring(c.relname from 5)::int as number, pg_total_relation_size(c.oid) as bytes,
    coalesce(i.inhdetachpending, false) as pending, i.inhrelid is not null as attached
  from pg_class c left join pg_inherits i on i.inhrelid = c.oid
  where c.relnamespace = 'gatehouse'::regnamespace and c.relkind = 'r' and c.relname ~ '^log_[0-9]+$' order by 1`,
};
/** The oldest row that something still needs: the last one of a joined node, or of the newest checkpoint. */
const BOUNDS = {
  name: 'bounds',
  text: `select h.pos, least(
      (select min(applied) from gatehouse.node where joined),
      coalesce((select max(pos) from (select pos from gatehouse.checkpoint group by pos, parts
        having count(*) = parts) complete), -1)) as needed
  from gatehouse.head h`,
};

export class LogPartitions {
  readonly #database: Database;
  readonly #keepMs: number;
  readonly #keepBytes: number;

  constructor({ url, keepHours, keepBytes = KEEP_BYTES }: LogPartitionsOptions) {
    this.#keepMs = keepHours * HOUR_MS;
    this.#keepBytes = keepBytes;
    this.#database = new Database({
      url,
      applicationName: 'gatehouse partitions',
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    });
  }

  /** Must be called each minute by one node; several do no harm. Rejects with `DatabaseFailure`. */
  async maintain(): Promise<PartitionChanges> {
    const [bounds] = (await this.#database.run(BOUNDS)).rows;
    const position = Number(bounds?.['pos']);
    const { rows } = await this.#database.run(LIST);
    const made = await this.#make(rows, position);
    const dropped = await this.#drop(rows, Number(bounds?.['needed']));
    return { made, dropped };
  }

  /** Makes the partition of a position, and the next one when it is near. */
  async prepare(position: number): Promise<void> {
    await this.#make((await this.#database.run(LIST)).rows, position);
  }

  close(): void {
    this.#database.close();
  }

  async #make(partitions: readonly DatabaseRow[], position: number): Promise<number[]> {
    const made: number[] = [];
    const attached = new Set(partitions.filter(isAttached).map(numberOf));
    const last = Math.floor((position + AHEAD_ROWS) / PARTITION_ROWS);
    for (let number = Math.floor(position / PARTITION_ROWS); number <= last; number += 1) {
      if (attached.has(number)) continue;
      await this.#database.script(attachScript(number));
      made.push(number);
    }
    return made;
  }

  /** The oldest first, as long as all conditions hold. */
  async #drop(partitions: readonly DatabaseRow[], needed: number): Promise<number[]> {
    const dropped: number[] = [];
    let laterBytes = partitions.reduce((sum, { bytes }) => sum + Number(bytes), 0);
    for (const partition of partitions) {
      const number = numberOf(partition);
      laterBytes -= Number(partition['bytes']);
      const end = (number + 1) * PARTITION_ROWS;
      const isFree = end - 1 < needed && laterBytes >= this.#keepBytes && (await this.#isOld(number));
      if (!isFree) break;
      await this.#detach(partition);
      await this.#database.script(`drop table gatehouse.log_${number}`);
      dropped.push(number);
    }
    return dropped;
  }

  async #isOld(number: number): Promise<boolean> {
    const { rows } = await this.#database.run(
      {
        name: `age_${number}`,
        text: `select at < clock_timestamp() - $1::bigint * interval '1 millisecond' as old
          from gatehouse.log_${number} order by pos desc limit 1`,
      },
      [this.#keepMs],
    );
    return rows.every(({ old }) => old === true);
  }

  /** A detachment that was cut off is finished first; a partition that is detached already needs none. */
  async #detach(partition: DatabaseRow): Promise<void> {
    if (!isAttached(partition)) return;
    const how = partition['pending'] === true ? 'finalize' : 'concurrently';
    await this.#database.script(
      `alter table gatehouse.log detach partition gatehouse.log_${numberOf(partition)} ${how}`,
    );
  }
}

const numberOf = (partition: DatabaseRow) => Number(partition['number']);
const isAttached = (partition: DatabaseRow) => partition['attached'] === true;

/** The check spares the scan of the new table while the log is locked. */
function attachScript(number: number): string {
  const [from, to] = [number * PARTITION_ROWS, (number + 1) * PARTITION_ROWS];
  const name = `gatehouse.log_${number}`;
  return `
create table if not exists ${name} (like gatehouse.log including all);
alter table ${name} drop constraint if exists in_range;
alter table ${name} add constraint in_range check (pos >= ${from} and pos < ${to});
alter table gatehouse.log attach partition ${name} for values from (${from}) to (${to});
`;
}
