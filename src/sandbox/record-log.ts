/**
 * The sandbox's memory: a file of JSON lines, appended and fdatasynced before any answer that depends on it, replayed
 * at start. Appends that arrive while a write is under way share the next one (group commit).
 */
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

/** One change. `tick` is the highest id that it used, so that ids continue above it after a restart. */
export interface SandboxRecord {
  readonly module: string;
  readonly type: string;
  readonly tick: string;
}

/** Applies the records of a module; `Rows` has the fields of each type. A type that no row has is passed over. */
export function applying<Rows>(
  appliers: {
    readonly [Type in keyof Rows]: (record: Rows[Type] & SandboxRecord) => void;
  },
): (
  record: { [Type in keyof Rows]: SandboxRecord & { readonly type: Type } & Rows[Type] }[keyof Rows],
) => void {
  const byType = appliers as Readonly<Record<string, (record: SandboxRecord) => void>>;
  return (record) => byType[String(record.type)]?.(record);
}

/** Returns the function that commits records of a module, with a fresh tick unless one is given. */
export function committing<Rows>(module: string) {
  return <Type extends keyof Rows & string>(
    call: { tick(): string; commit(record: SandboxRecord): void },
    type: Type,
    { tick = call.tick(), ...fields }: Rows[Type] & { readonly tick?: string },
  ): void => call.commit({ module, type, tick, ...fields });
}

const NEW_LINE = 0x0a;

export class RecordLog {
  readonly #file: FileHandle;
  #waiting: string[] = [];
  #next: Promise<void> | undefined;
  #current: Promise<void> = Promise.resolve();
  #idle = true;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /**
   * Opens the file, creating it and its folders where missing, and hands every record to `replay` in order. A last
   * line that a crash cut off was never acknowledged and is removed; damage anywhere else throws with its line number.
   */
  static async open(path: string, replay: (record: SandboxRecord) => void): Promise<RecordLog> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = await open(path, 'a+', 0o600);
    try {
      const bytes = await file.readFile();
      const wholeBytes = replayLines(bytes, path, replay);
      if (wholeBytes < bytes.length) await file.truncate(wholeBytes);
      await file.datasync();
      const folder = await open(dirname(path), 'r');
      await folder.sync().finally(() => folder.close());
      return new RecordLog(file);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Resolves when the records are on the disk. Rejects when that failed: what is in memory is then ahead of the disk. */
  append(records: readonly SandboxRecord[]): Promise<void> {
    for (const record of records) this.#waiting.push(JSON.stringify(record));
    this.#idle = false;
    this.#next ??= this.#current.then(() => this.#flush());
    return this.#next;
  }

  /** Resolves when everything appended so far is on the disk: an answer may then show it. */
  settled(): Promise<void> | undefined {
    return this.#idle ? undefined : (this.#next ?? this.#current);
  }

  async close(): Promise<void> {
    await this.settled();
    await this.#file.close();
  }

  #flush(): Promise<void> {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#next = undefined;
    this.#current = this.#write(`${lines.join('\n')}\n`);
    return this.#current;
  }

  async #write(text: string): Promise<void> {
    await this.#file.appendFile(text);
    await this.#file.datasync();
    if (this.#next === undefined) this.#idle = true;
  }
}

/** Bytes of the whole lines: the length to keep. */
function replayLines(bytes: Buffer, path: string, replay: (record: SandboxRecord) => void): number {
  let start = 0;
  for (let line = 1; start < bytes.length; line += 1) {
    const end = bytes.indexOf(NEW_LINE, start);
    const record = end === -1 ? undefined : readRecord(bytes.toString('utf8', start, end));
    if (record === undefined) {
      if (end === -1 || end === bytes.length - 1) return start;
      throw new Error(`${path}: line ${line} is damaged`);
    }
    replay(record);
    start = end + 1;
  }
  return start;
}

function readRecord(line: string): SandboxRecord | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isRecord(value: unknown): value is SandboxRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { module, type, tick } = value as Record<string, unknown>;
  return typeof module === 'string' && typeof type === 'string' && typeof tick === 'string';
}
