/**
 * The log: JSON lines on standard error, as log-lines.ts declares them. Lines about the process are written at once.
 * Lines about traffic are written in batches by a sink that drops and counts lines rather than delay answers.
 */
import { fstatSync } from 'node:fs';
import { destination, pino } from 'pino';
import { MINUTE_MS } from '../../domain/time.ts';
import { type LogLineDefinition, PROGRAM_LINES, type ProgramFields, type ProgramLine } from './log-lines.ts';
import { type LogStyle, prettyLine } from './pretty.ts';

export interface Log {
  /** Calls back with each line that is written from now on, as JSON. */
  readonly follow?: (listener: (line: string) => void) => void;
  write<Name extends ProgramLine>(name: Name, ...fields: ProgramFields<Name>): void;
}

/** `sync` because lines are few: starts, stops, bugs. A crash must not swallow its own reason. */
export function createLog(style: LogStyle | 'silent' = { format: 'json', level: 'info' }): Log {
  const stream = destination({ dest: 2, sync: true });
  const isPretty = style !== 'silent' && style.format === 'pretty';
  const listeners: ((line: string) => void)[] = [];
  const logger = pino(
    {
      level: style === 'silent' ? style : style.level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    {
      write(line: string) {
        stream.write(isPretty ? prettyLine(line) : line);
        for (const listener of listeners) listener(line);
      },
    },
  );
  return {
    follow: (listener) => void listeners.push(listener),
    write(name, ...[fields]) {
      const { level, message }: LogLineDefinition = PROGRAM_LINES[name];
      logger[level](fields ?? {}, message);
    },
  };
}

/** For lines that repeat: true once a minute for each reason, of which there are few. */
export function onceAMinute(nowMs: () => number): (reason: string) => boolean {
  const written = new Map<string, number>();
  return (reason) => {
    if (nowMs() - (written.get(reason) ?? Number.NEGATIVE_INFINITY) < MINUTE_MS) return false;
    written.set(reason, nowMs());
    return true;
  };
}

/** A pipe takes so much at once or not at all (PIPE_BUF of Linux): no line of the other writer lands inside ours. */
const PIPE_BATCH_BYTES_MAX = 4_096;
/** Anything else takes a write whole, and one write for some two hundred lines costs least. */
const BATCH_BYTES_MAX = 64 * 1024;
/** Bytes that wait for a reader that is behind; lines beyond are dropped. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Buffers for batches, one being filled while another is written. More only while the reader is behind. */
const KEPT_BUFFERS = 2;
/** A line is written at the latest so long after its request. Milliseconds. */
const FLUSH_MS = 100;

interface LineCounters {
  readonly written: number;
  /** The reader was behind, or is gone. */
  readonly dropped: number;
}

/** Takes finished lines of plain ASCII, each with its line feed and at most `PIPE_BATCH_BYTES_MAX` long. */
export interface LineSink {
  write(line: string): void;
  counters(): LineCounters;
  /** Resolves once everything is written, or cannot be. */
  close(): Promise<void>;
}

/** Bytes that were taken but are still unwritten at a stop get so long. Milliseconds. */
const CLOSE_MS = 500;

export function openLineSink(fileDescriptor = 2): LineSink {
  let closed = false;
  const batchBytesMax = fstatSync(fileDescriptor).isFIFO() ? PIPE_BATCH_BYTES_MAX : BATCH_BYTES_MAX;
  const stream = destination({
    dest: fileDescriptor,
    sync: false,
    // 1: each batch is written at once, and `flush` waits for it.
    minLength: 1,
    maxWrite: batchBytesMax,
    maxLength: WAITING_BYTES_MAX,
    // A text would be counted and encoded twice.
    contentMode: 'buffer',
    // A full pipe is retried until the process ends.
    retryEAGAIN: () => !closed,
  });
  const counts = { written: 0, dropped: 0 };
  let batch = '';
  let lines = 0;
  let timer: NodeJS.Timeout | undefined;
  let refused = false;
  let readerGone = false;
  stream.on('drop', () => {
    refused = true;
  });
  // pino's stream writes nothing more after a broken pipe, and waits after any other failure.
  stream.on('error', () => {
    readerGone = true;
  });
  const buffers = new KeptBuffers(batchBytesMax);
  stream.on('write', (sizeBytes: number) => buffers.written(sizeBytes));
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    if (lines === 0) return;
    refused = readerGone;
    const bytes = buffers.fill(batch);
    writeBytes(stream, bytes);
    if (refused) counts.dropped += lines;
    else counts.written += lines;
    if (refused) buffers.refused(bytes);
    else buffers.taken(bytes);
    batch = '';
    lines = 0;
  };
  const end = () => {
    closed = true;
    process.off('exit', end);
    // Without it the stream would wait at the exit for a reader that may never come.
    stream.destroy();
  };
  process.once('exit', end);
  return {
    write(line) {
      if (batch.length + line.length > batchBytesMax) flush();
      batch += line;
      lines += 1;
      timer ??= setTimeout(flush, FLUSH_MS).unref();
    },
    counters: () => ({ ...counts }),
    close() {
      flush();
      return new Promise<void>((resolve) => {
        const giveUp = () => {
          closed = true;
          // Not now: a stream that is destroyed while it writes throws when the write ends (sonic-boom 4.2.1). Before
          // pino's own listener, which would wait for the reader.
          process.prependOnceListener('exit', end);
          resolve();
        };
        const timeout = setTimeout(giveUp, readerGone ? 0 : CLOSE_MS);
        // A pipe cannot be synced; the error is ignored because the bytes are written.
        stream.flush(() => {
          clearTimeout(timeout);
          end();
          resolve();
        });
      });
    },
  };
}

/** Its types know texts alone; with `contentMode` it takes bytes and keeps them until they are written. */
function writeBytes(stream: object, bytes: Buffer): void {
  (stream as { write(bytes: Buffer): boolean }).write(bytes);
}

/** Copies each batch once, into a buffer that is used again when its bytes are written. */
class KeptBuffers {
  readonly #sizeBytes: number;
  readonly #free: Buffer[];
  readonly #kept: ReadonlySet<ArrayBufferLike>;
  /** Batches in the order of their writes. `endBytes`: of all batches, the position of its last byte. */
  readonly #leaving: { readonly bytes: Buffer; readonly endBytes: number }[] = [];
  #takenBytes = 0;
  #writtenBytes = 0;

  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
    this.#free = Array.from({ length: KEPT_BUFFERS }, () => Buffer.allocUnsafeSlow(sizeBytes));
    this.#kept = new Set(this.#free.map(({ buffer }) => buffer));
  }

  /** A batch of ASCII. A short one gets its own memory: many of them may wait for a reader. */
  fill(batch: string): Buffer {
    const kept = batch.length > this.#sizeBytes / 2 ? this.#free.pop() : undefined;
    if (kept === undefined) return Buffer.from(batch, 'latin1');
    return kept.subarray(0, kept.write(batch, 'latin1'));
  }

  taken(bytes: Buffer): void {
    this.#takenBytes += bytes.length;
    if (this.#kept.has(bytes.buffer)) this.#leaving.push({ bytes, endBytes: this.#takenBytes });
  }

  refused(bytes: Buffer): void {
    if (this.#kept.has(bytes.buffer)) this.#free.push(Buffer.from(bytes.buffer));
  }

  written(sizeBytes: number): void {
    this.#writtenBytes += sizeBytes;
    for (let first = this.#leaving[0]; first !== undefined; first = this.#leaving[0]) {
      if (first.endBytes > this.#writtenBytes) return;
      this.#leaving.shift();
      this.#free.push(Buffer.from(first.bytes.buffer));
    }
  }
}
