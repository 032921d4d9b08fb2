/**
 * Largest loss of a running upload by a crash: bytes that were received and are not saved, while saves take as long as
 * they like.
 */
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import fc from 'fast-check';
import t from 'tap';
import { GatewayError } from '../../../../src/domain/errors.ts';
import type { PartLease } from '../../../../src/io/files/storage/port.ts';
import type { Received } from '../../../../src/io/files/upload/body-writer.ts';
import { SharedBuffers } from '../../../../src/io/files/upload/buffers.ts';
import { BodyReceiver } from '../../../../src/io/files/upload/receiver.ts';
import { UNSAVED_MAX_BYTES } from '../../../../src/io/files/upload/upload-progress.ts';
import { crc32 } from '../../../../src/workers/crc32.ts';
import { ManualClock } from '../../../support/actors/actors.ts';
import { runs } from '../../../support/depth.ts';
import { contentOf, GatedWorkers, newLease, settle } from '../../../support/files/gated-workers.ts';
import { FakeBody } from '../../../support/files/incoming-body.ts';

const MIB = 1024 * 1024;
/** Bytes of one read of uWS. With the receive buffer that the program sets, two more may follow after a pause. */
const READ_BYTES = 512 * 1024;
const AFTER_PAUSE_BYTES = 2 * READ_BYTES;
const BODY = randomBytes(20 * MIB);

/** A resumable body whose saves are answered when the test says so. */
class SavedUpload {
  readonly workers = new GatedWorkers();
  readonly body = new FakeBody();
  readonly clock = new ManualClock();
  readonly receiving: Promise<Received>;
  /** Saves that run, at most one. */
  readonly saves: ((refusal?: GatewayError) => void)[] = [];
  readonly refusals: GatewayError[] = [];
  sentBytes = 0;
  savedBytes = 0;
  /** Each save named what its part holds. */
  savesAreRight = true;

  constructor(lease: PartLease, buffers = 20) {
    const sharedBuffers = new SharedBuffers(buffers);
    const receiver = new BodyReceiver(this.workers, { folder: tmpdir(), sharedBuffers });
    const stop = new AbortController();
    this.receiving = receiver.receive({
      body: this.body,
      lease,
      positionBytes: 0,
      maxBytes: BODY.length,
      tooLong: 'MaxFileSize',
      signal: stop.signal,
      checkpoint: {
        timer: this.clock.timer,
        save: (sizeBytes, crc) => {
          const prefix = contentOf(lease, sizeBytes).subarray(0, sizeBytes);
          this.savesAreRight &&= prefix.equals(BODY.subarray(0, sizeBytes)) && crc32(prefix) === crc;
          return new Promise((resolve) => {
            this.saves.push((refusal) => {
              if (refusal === undefined) this.savedBytes = sizeBytes;
              resolve(refusal);
            });
          });
        },
        onRefused: (error) => {
          this.refusals.push(error);
          stop.abort(error);
        },
      },
    });
  }

  send(sizeBytes: number): void {
    const piece = BODY.subarray(this.sentBytes, this.sentBytes + sizeBytes);
    this.sentBytes += piece.length;
    this.body.send(piece);
  }

  async sendUntilPaused(): Promise<void> {
    while (!this.body.paused && this.sentBytes < BODY.length) {
      this.send(READ_BYTES);
      await this.workers.releaseAll();
    }
  }

  get unsavedBytes(): number {
    return this.sentBytes - this.savedBytes;
  }

  async answerSave(refusal?: GatewayError): Promise<void> {
    this.saves.shift()?.(refusal);
    await settle();
  }

  async end(): Promise<Received> {
    this.body.end();
    await this.workers.releaseAll();
    return await this.receiving;
  }
}

t.test(
  'progress: while a save takes, the body waits before 8 MiB are unsaved, and continues after it',
  async (t) => {
    const upload = new SavedUpload(await newLease(t));
    await upload.sendUntilPaused();
    t.equal(upload.saves.length, 1, 'one save at a time');
    t.equal(upload.sentBytes, UNSAVED_MAX_BYTES - 3 * READ_BYTES);
    await upload.answerSave();
    t.notOk(upload.body.paused);
    t.equal(upload.savedBytes, UNSAVED_MAX_BYTES / 2, 'asked for when half of it had arrived');
    await upload.sendUntilPaused();
    t.equal(upload.unsavedBytes, UNSAVED_MAX_BYTES - 3 * READ_BYTES);
    await upload.answerSave();
    t.match(await upload.end(), { ended: 'complete', sizeBytes: upload.sentBytes });
    t.ok(upload.savesAreRight);
  },
);

const steps = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ send: fc.integer({ min: 1, max: READ_BYTES }) }) },
    { weight: 6, arbitrary: fc.record({ task: fc.nat(20) }) },
    { weight: 2, arbitrary: fc.record({ save: fc.boolean() }) },
    { weight: 1, arbitrary: fc.record({ tick: fc.constant(true) }) },
  ),
  { minLength: 40, maxLength: 160 },
);

async function staysBounded(lease: PartLease, history: readonly object[], buffers: number) {
  const upload = new SavedUpload(lease, buffers);
  let afterPauseBytes = 0;
  for (const step of history as { send?: number; task?: number; save?: boolean; tick?: boolean }[]) {
    if (step.send !== undefined) {
      if (!upload.body.paused) afterPauseBytes = 0;
      else if (afterPauseBytes + step.send > AFTER_PAUSE_BYTES) continue;
      else afterPauseBytes += step.send;
      if (upload.body.discarded || upload.sentBytes + step.send > BODY.length) continue;
      upload.send(step.send);
      if (upload.unsavedBytes > UNSAVED_MAX_BYTES) return false;
    } else if (step.task !== undefined && upload.workers.waiting.length > 0) {
      await upload.workers.release(step.task % upload.workers.waiting.length);
    } else if (step.save !== undefined) {
      await upload.answerSave(step.save ? undefined : new GatewayError('Overloaded'));
    } else if (step.tick === true) {
      upload.clock.fireNext(Number.POSITIVE_INFINITY);
    }
  }
  const received = await upload.end();
  const ended = upload.refusals.length > 0 ? 'stopped' : 'complete';
  return upload.savesAreRight && received.ended === ended && received.sizeBytes === upload.sentBytes;
}

// covers P1 S152
t.test(
  'progress: any pieces, any order of tasks, slow and refused saves: at most 8 MiB that were received are unsaved',
  async (t) => {
    const lease = await newLease(t);
    await t.resolves(
      fc.assert(
        fc.asyncProperty(steps, fc.integer({ min: 0, max: 20 }), (history, buffers) =>
          staysBounded(lease, history, buffers),
        ),
        runs(100),
      ),
    );
  },
);

t.test('progress: a refused save is tried again; one that the body waits for ends the upload', async (t) => {
  const upload = new SavedUpload(await newLease(t));
  const full = new GatewayError('StorageFull');
  upload.send(MIB);
  await upload.workers.releaseAll();
  for (let tick = 0; tick < 5; tick += 1) {
    upload.clock.fireNext(Number.POSITIVE_INFINITY);
    t.equal(upload.saves.length, 1, 'after 2 s');
    await upload.answerSave(full);
    t.same(upload.refusals, []);
  }
  await upload.sendUntilPaused();
  await upload.answerSave(full);
  t.same(upload.refusals, [full]);
  t.match(await upload.receiving, { ended: 'stopped', sizeBytes: upload.sentBytes });
});
