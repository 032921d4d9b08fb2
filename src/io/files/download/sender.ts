/**
 * Sends ranges of a file and the text between them: a long body piece by piece through lent buffers, a short one whole.
 * The bandwidth limiter sets the rate, the buffers bound the memory.
 */
import { GatewayError } from '../../../domain/errors.ts';
import type { BodyPiece } from '../../../domain/files/ranges.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { OutgoingBody, OutgoingSource } from '../../http/exchange/stream.ts';
import type { StoredFile } from '../storage/port.ts';
import type { ThrottledStream } from '../throttle.ts';
import type { SendBuffers } from './buffers.ts';

/**
 * A body up to this is sent whole, with one read within the call. uWebSockets.js keeps what the socket does not take at
 * once, so it must be small.
 */
export const WHOLE_BODY_BYTES = 32 * 1024;
/**
 * A client that reads nothing for this time is disconnected, as nginx does by default (`send_timeout`); it may resume with
 * Range.
 */
export const UNREAD_MS = 60 * SECOND_MS;
/** So is a slower client, so that a few of them cannot hold all buffers. A piece gets `UNREAD_MS` on top. */
const TAKEN_BYTES_PER_SECOND_MIN = 4 * 1024;

/** The bandwidth limiter of one answer. */
export type Pace = Pick<ThrottledStream, 'ask' | 'charge' | 'paid' | 'leave'>;

export interface Sending {
  readonly file: StoredFile;
  /** Pieces within the file. */
  readonly pieces: readonly BodyPiece[];
  readonly lengthBytes: number;
  readonly pace: Pace;
  readonly buffers: SendBuffers;
  /** Called for a failure within the body, when the connection was closed. */
  readonly onFault: (error: unknown) => void;
  /** Milliseconds in which a client has to take one piece; computed from its length unless given. */
  readonly takeMs?: number;
}

/** Position of the next byte within the pieces. */
interface Cursor {
  piece: number;
  offset: number;
}

/** The source of a long body. Throws `Overloaded` when all buffers are lent; the caller then still owns the file. */
export function createFileSource(sending: Sending): OutgoingSource {
  const lent = sending.buffers.lend(sending.lengthBytes);
  if (lent === undefined) throw new GatewayError('Overloaded');
  return new FileSource(sending, lent);
}

/** With two buffers a thread of libuv fills one while this thread hands the other to the socket: one read at a time. */
class FileSource implements OutgoingSource {
  readonly #sending: Sending;
  readonly #lent: readonly Buffer[];
  readonly #cursor: Cursor = { piece: 0, offset: 0 };
  /** Buffers that are not read into, filled or being sent. */
  readonly #free: Buffer[];
  #filled: Filled | undefined;
  /** The buffer that the socket did not take yet. */
  #leaving: Buffer | undefined;
  #unreadBytes: number;
  #unsentBytes: number;
  #out: OutgoingBody | undefined;
  #step: 'idle' | 'checking' | 'reading' = 'idle';
  #over = false;
  #released = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(sending: Sending, lent: readonly Buffer[]) {
    this.#sending = sending;
    this.#lent = lent;
    this.#free = [...lent];
    this.#unreadBytes = sending.lengthBytes;
    this.#unsentBytes = sending.lengthBytes;
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    this.#advance();
  }

  drained(): void {
    clearTimeout(this.#timer);
    if (this.#leaving !== undefined) this.#free.push(this.#leaving);
    this.#leaving = undefined;
    this.#advance();
  }

  lost(): void {
    this.#over = true;
    this.#release();
  }

  #advance(): void {
    const filled = this.#leaving === undefined ? this.#filled : undefined;
    if (filled !== undefined) this.#filled = undefined;
    // First, so that the disk thread reads while this one sends.
    this.#readNext();
    if (filled !== undefined) this.#send(filled);
    if (this.#unsentBytes === 0 && this.#leaving === undefined) this.lost();
    else this.#readNext();
  }

  #readNext(): void {
    if (this.#over || this.#step !== 'idle' || this.#filled !== undefined || this.#unreadBytes === 0) return;
    const buffer = this.#free.pop();
    if (buffer === undefined) return;
    this.#step = 'checking';
    this.#sending.pace.ask(Math.min(this.#unreadBytes, buffer.length), (bytes) => this.#fill(buffer, bytes));
  }

  #fill(buffer: Buffer, bytes: number): void {
    this.#step = 'idle';
    if (this.#over) return;
    this.#step = 'reading';
    this.#unreadBytes -= bytes;
    const view = buffer.subarray(0, bytes);
    readPieces(this.#sending, this.#cursor, view, this.#late)
      .then(() => {
        this.#step = 'idle';
        if (this.#over) return this.#release();
        this.#filled = { buffer, view };
        this.#advance();
      })
      .catch((error: unknown) => this.#fail(error));
  }

  /** A read hangs: the client may resume elsewhere. File and buffers stay taken until it has settled. */
  readonly #late = () => {
    if (this.#over) return;
    this.lost();
    this.#reportFault(new GatewayError('TaskTimedOut'));
  };

  #send({ buffer, view }: Filled): void {
    this.#unsentBytes -= view.length;
    if (this.#out?.send(view) === true) this.#free.push(buffer);
    else if (!this.#over) {
      this.#leaving = buffer;
      this.#timer = setTimeout(() => this.#out?.cut(), this.#takeMs(view.length));
    }
  }

  #takeMs(lengthBytes: number): number {
    return this.#sending.takeMs ?? UNREAD_MS + (lengthBytes * SECOND_MS) / TAKEN_BYTES_PER_SECOND_MIN;
  }

  /** The announced length cannot be sent: only closing the connection signals that. */
  #fail(error: unknown): void {
    this.#step = 'idle';
    const cut = !this.#over;
    this.lost();
    if (cut) this.#reportFault(error);
  }

  #reportFault(error: unknown): void {
    this.#sending.onFault(error);
    this.#out?.cut(error instanceof GatewayError ? error.row : 'FileStorageFailed');
  }

  /** Only after a read has settled: it would write into the buffer of another answer. */
  #release(): void {
    clearTimeout(this.#timer);
    this.#sending.pace.leave();
    if (this.#step === 'reading' || this.#released) return;
    this.#released = true;
    this.#sending.buffers.giveBack(this.#lent);
    this.#sending.file.close();
  }
}

/** A buffer, and what of it is to be sent. */
interface Filled {
  readonly buffer: Buffer;
  readonly view: Buffer;
}

/** Fills `target` from `cursor` on, and moves it. Mostly one read, so one promise. */
function readPieces(sending: Sending, cursor: Cursor, target: Buffer, late: () => void): Promise<void> {
  const { file, pieces } = sending;
  for (let at = 0; at < target.length; ) {
    const { view, position } = stretchAt(pieces, cursor, at === 0 ? target : target.subarray(at));
    at += view.length;
    if (position === undefined) continue;
    const rest = target.subarray(at);
    return file.read(view, position, late).then((got) => {
      checkRead(got, view.length);
      return rest.length === 0 ? undefined : readPieces(sending, cursor, rest, late);
    });
  }
  return Promise.resolve();
}

/** Short bodies take memory from shared blocks: a block for each costs more than reading the bytes. */
const BLOCK_BYTES = 128 * 1024;
let block = Buffer.alloc(0);
let blockUsed = 0;

/** Memory of one body; its block is freed when all bodies in it are gone. */
function cutMemory(lengthBytes: number): Buffer {
  if (blockUsed + lengthBytes > block.length) {
    block = Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, lengthBytes));
    blockUsed = 0;
  }
  blockUsed += lengthBytes;
  return block.subarray(blockUsed - lengthBytes, blockUsed);
}

/**
 * The whole body, of a file that can be read within the call. In memory of its own: other answers may be made before
 * this one is written.
 */
export function readWhole(file: StoredFile, pieces: readonly BodyPiece[], lengthBytes: number): Buffer {
  const target = cutMemory(lengthBytes);
  const cursor: Cursor = { piece: 0, offset: 0 };
  for (let at = 0; at < lengthBytes; ) {
    const { view, position } = stretchAt(pieces, cursor, at === 0 ? target : target.subarray(at));
    if (position !== undefined) checkRead(file.readNow?.(view, position) ?? 0, view.length);
    at += view.length;
  }
  return target;
}

/** The part of `target` that the piece at `cursor` fills. Text is written at once; file bytes have to be read. */
function stretchAt(
  pieces: readonly BodyPiece[],
  cursor: Cursor,
  target: Buffer,
): { readonly view: Buffer; readonly position: number | undefined } {
  const piece = pieces[cursor.piece];
  if (piece === undefined) throw new RangeError('more bytes were promised than there are pieces');
  const { offset } = cursor;
  const pieceBytes = piece.kind === 'text' ? piece.text.length : piece.lengthBytes;
  const viewBytes = Math.min(pieceBytes - offset, target.length);
  const view = viewBytes === target.length ? target : target.subarray(0, viewBytes);
  cursor.offset += view.length;
  if (cursor.offset === pieceBytes) {
    cursor.piece += 1;
    cursor.offset = 0;
  }
  if (piece.kind === 'file') return { view, position: piece.first + offset };
  view.write(piece.text.slice(offset, offset + view.length), 'latin1');
  return { view, position: undefined };
}

function checkRead(gotBytes: number, wantedBytes: number): void {
  if (gotBytes !== wantedBytes) throw new Error(`the file ended ${wantedBytes - gotBytes} bytes early`);
}
