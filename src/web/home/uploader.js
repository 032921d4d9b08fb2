/**
 * One upload by the v1 transport (spec 4.6): pieces of 256 KB with a checksum each. Resuming asks which pieces
 * are missing, so that a lost connection costs one piece.
 */
import { ApiError, get, post, refusalOf, send } from '../shared/api.js';
import { crc32 } from '../shared/crc32.js';

export const PIECE_BYTES = 256 * 1024;
/** Attempts of a piece after temporary failures: no connection, 429, 503. */
const TRIES_MAX = 6;

export class Upload {
  #file;
  #onChange;
  #id;
  #paused = false;
  #cancelled = false;

  /** `onChange` is called with `{stage, done, total, fileId?, fileCode?, error?}` after every step. */
  constructor(file, onChange) {
    this.#file = file;
    this.#onChange = onChange;
  }

  get total() {
    return Math.ceil(this.#file.size / PIECE_BYTES);
  }

  async start() {
    const whole = await this.#checksum();
    if (this.#cancelled) return;
    this.#id = await post('/auth/v1/file/init_upload', {
      FileName: this.#file.name,
      FileSize: this.#file.size,
      CRC32: whole,
    });
    await this.#run();
  }

  pause() {
    this.#paused = true;
  }

  async resume() {
    this.#paused = false;
    await this.#run();
  }

  async cancel() {
    this.#cancelled = true;
    if (this.#id !== undefined) await post(`/auth/v1/file/cancel_upload?uploadId=${this.#id}`);
    this.#tell('cancelled', 0);
  }

  #tell(stage, done, more = {}) {
    this.#onChange({ stage, done, total: this.total, ...more });
  }

  async #piece(number) {
    const start = number * PIECE_BYTES;
    return new Uint8Array(await this.#file.slice(start, start + PIECE_BYTES).arrayBuffer());
  }

  async #checksum() {
    let value = 0;
    for (let number = 0; number < this.total; number += 1) {
      value = crc32(await this.#piece(number), value);
      if (number % 16 === 0) this.#tell('checking', number);
    }
    return value;
  }

  /** Sends the missing pieces until the file is complete or the upload is paused. */
  async #run() {
    const { missing } = await get('/auth/v1/file/upload_status', { uploadId: this.#id });
    let left = missing.length;
    for (const number of missing) {
      if (this.#cancelled) return;
      if (this.#paused) {
        this.#tell('paused', this.total - left);
        return;
      }
      this.#tell('sending', this.total - left);
      const { fileId, fileCode } = await this.#send(number);
      left -= 1;
      if (fileId !== null) {
        this.#tell('complete', this.total, { fileId, fileCode });
        return;
      }
    }
  }

  async #send(number) {
    const bytes = await this.#piece(number);
    const path = `/auth/v1/file/upload_part?uploadId=${this.#id}&chunkNumber=${number}&chunkCrc32=${crc32(bytes)}`;
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = await send('POST', path, {
          headers: { 'Content-Type': 'application/octet-stream' },
          body: bytes,
        });
        const value = await answer.json().catch(() => undefined);
        if (!answer.ok) throw refusalOf(answer, value);
        return value.result;
      } catch (error) {
        const passes = error instanceof ApiError && [0, 429, 503].includes(error.status);
        if (!passes || tries === TRIES_MAX || this.#cancelled) throw error;
        const waitMs = (error.retryAfterSeconds ?? 2 ** (tries - 1)) * 1_000;
        await new Promise((resolve) => setTimeout(resolve, waitMs));
      }
    }
  }
}
