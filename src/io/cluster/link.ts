/**
 * One connection between two nodes: frames in order, writes of one event-loop tick joined, a bound on what waits, and a
 * heartbeat. What the frames mean is up to its owner.
 */
import type { Socket } from 'node:net';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { BadFrame, FRAME_BYTES_MAX, FrameReader, frameOf, packFrame, unpackFrame } from './frames.ts';
import { HELLO_BYTES_MAX } from './handshake.ts';

/** Bounds of what a link holds and the kernel has not taken. One frame more is refused. */
export const QUEUED_BYTES_MAX = 64 * 1024 * 1024;
export const QUEUED_FRAMES_MAX = 20_000;
/** Bytes given to the socket at a time: what comes meanwhile is joined. */
const WRITING_BYTES_MAX = 1024 * 1024;
/** Above this, joined frames are not copied into one buffer. */
const COPIED_BYTES_MAX = 256 * 1024;
/** A side that answers calls reads no further ones while so many bytes of answers wait. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Interval of heartbeats, in both directions. */
export const BEAT_MS = 1_000;
/** A link is lost after so many intervals without a byte. They are counted, because a suspended process wakes up late. */
const SILENT_BEATS_MAX = 3;

/** `silent`: no heartbeat. `late`: no handshake in time. `frame`: the peer broke the protocol. `closed`: by the peer. */
export type CloseReason = 'closed' | 'silent' | 'late' | 'frame' | 'refused' | 'replaced' | 'stopped';

/** A frame without content, which only shows that the sender lives. */
const BEAT = 0;

interface LinkOptions {
  readonly socket: Socket;
  readonly schedule: Schedule;
  /** The other side asks and this one answers: calls are not read while answers wait. */
  readonly answers: boolean;
}

export class Link {
  readonly #socket: Socket;
  readonly #schedule: Schedule;
  readonly #answers: boolean;
  readonly #reader = new FrameReader(HELLO_BYTES_MAX);
  /** Receiver of the frames before `open`: the handshake. */
  #onText: ((frame: Buffer) => void) | undefined;
  #onFrame: ((frame: unknown) => void) | undefined;
  readonly #onClose: ((reason: CloseReason) => void)[] = [];
  #closed: CloseReason | undefined;
  #joined: Buffer[] = [];
  #joinedBytes = 0;
  #isFlushDue = false;
  /** A frame that its successor replaces as long as it has not left. */
  #latest: unknown;
  #writingBytes = 0;
  #queuedFrames = 0;
  #isPaused = false;
  #hasReceived = false;
  #silentBeats = 0;
  #cancelBeat: (() => void) | undefined;

  constructor({ socket, schedule, answers }: LinkOptions) {
    this.#socket = socket;
    this.#schedule = schedule;
    this.#answers = answers;
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    // The event `close` follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.close('closed'));
  }

  /** Bytes that wait or are on their way to the kernel. */
  get queuedBytes(): number {
    return this.#joinedBytes + this.#writingBytes;
  }

  get closed(): CloseReason | undefined {
    return this.#closed;
  }

  /** Called once, at once if the link is closed. */
  onClose(listener: (reason: CloseReason) => void): void {
    if (this.#closed === undefined) this.#onClose.push(listener);
    else listener(this.#closed);
  }

  /** The frames of the handshake. */
  onText(listener: (frame: Buffer) => void): void {
    this.#onText = listener;
  }

  writeText(text: string): void {
    if (this.#closed === undefined) this.#socket.write(frameOf(text));
  }

  /** The handshake is over: frames are values from now on, and large ones may come. */
  open(onFrame: (frame: unknown) => void): void {
    this.#reader.raise(FRAME_BYTES_MAX);
    this.#onFrame = onFrame;
    this.#beatLater();
  }

  /** False when the link is closed or full; nothing is sent then. Throws `BadFrame` for a value over the bound. */
  send(value: unknown): boolean {
    return this.#closed === undefined && this.sendPacked(packFrame(value));
  }

  /** Sends like `send`, but a frame that several links share. */
  sendPacked(frame: Buffer): boolean {
    if (this.#closed !== undefined) return false;
    if (this.queuedBytes + frame.length > QUEUED_BYTES_MAX || this.#queuedFrames >= QUEUED_FRAMES_MAX)
      return false;
    this.#join(frame);
    return true;
  }

  /** An answer: it has no bound of its own, because calls have one and are not read while answers wait. */
  answer(value: unknown): void {
    if (this.#closed !== undefined) return;
    this.#join(packFrame(value));
    if (this.queuedBytes > ANSWER_BYTES_MAX) this.#pause();
  }

  /** Sends the value, or one that is given later and before it has left. Never refused. */
  sendLatest(value: unknown): void {
    if (this.#closed !== undefined) return;
    this.#latest = value;
    this.#flushLater();
  }

  /** Closes without sending the frames that wait, except for a refused handshake: its last text is sent. */
  close(reason: CloseReason): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#cancelBeat?.();
    this.#reader.stop();
    this.#joined = [];
    this.#joinedBytes = 0;
    this.#latest = undefined;
    // The socket closes also without an end of the peer.
    if (reason === 'refused') this.#socket.destroySoon();
    else this.#socket.destroy();
    for (const listener of this.#onClose.splice(0)) listener(reason);
  }

  #receive(chunk: Buffer): void {
    this.#hasReceived = true;
    if (this.#closed !== undefined) return;
    try {
      this.#reader.read(chunk, (frame) => this.#take(frame));
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.close('frame');
    }
  }

  #take(frame: Buffer): void {
    if (this.#onFrame === undefined) {
      this.#onText?.(frame);
      return;
    }
    const value = unpackFrame(frame);
    if (value !== BEAT) this.#onFrame(value);
  }

  #join(frame: Buffer): void {
    this.#joined.push(frame);
    this.#joinedBytes += frame.length;
    this.#queuedFrames += 1;
    this.#flushLater();
  }

  #flushLater(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    this.#schedule.immediate(() => {
      this.#isFlushDue = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#closed !== undefined || this.#writingBytes > WRITING_BYTES_MAX) return;
    if (this.#latest !== undefined) {
      const frame = packFrame(this.#latest);
      this.#latest = undefined;
      this.#joined.push(frame);
      this.#joinedBytes += frame.length;
      this.#queuedFrames += 1;
    }
    const frames = this.#joined;
    const bytes = this.#joinedBytes;
    if (frames.length === 0) return;
    this.#joined = [];
    this.#joinedBytes = 0;
    this.#writingBytes += bytes;
    this.#write(frames, bytes, () => {
      this.#writingBytes -= bytes;
      this.#queuedFrames -= frames.length;
      if (this.#isPaused && this.queuedBytes <= ANSWER_BYTES_MAX) this.#resume();
      if (this.#joined.length > 0 || this.#latest !== undefined) this.#flushLater();
    });
  }

  #write(frames: readonly Buffer[], bytes: number, onWritten: () => void): void {
    const [only] = frames;
    if (only !== undefined && frames.length === 1) this.#socket.write(only, onWritten);
    else if (bytes <= COPIED_BYTES_MAX) this.#socket.write(Buffer.concat(frames, bytes), onWritten);
    else {
      this.#socket.cork();
      for (const [index, frame] of frames.entries())
        this.#socket.write(frame, index === frames.length - 1 ? onWritten : undefined);
      this.#socket.uncork();
    }
  }

  #pause(): void {
    if (!this.#answers || this.#isPaused) return;
    this.#isPaused = true;
    this.#socket.pause();
  }

  #resume(): void {
    this.#isPaused = false;
    this.#socket.resume();
  }

  #beatLater(): void {
    this.#cancelBeat = this.#schedule.timer(BEAT_MS, () => {
      if (this.#hasReceived || this.#isPaused) this.#silentBeats = 0;
      else this.#silentBeats += 1;
      this.#hasReceived = false;
      if (this.#silentBeats >= SILENT_BEATS_MAX) {
        this.close('silent');
        return;
      }
      if (this.#latest === undefined) this.sendLatest(BEAT);
      this.#beatLater();
    });
  }
}
