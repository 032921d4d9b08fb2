/** Durable messages to the uploads of one user: from the upload slots, from the account and from itself. */
import { receiver } from '../../runtime/protocol.ts';
import type { UploadFacts } from './upload-state.ts';

export const UPLOAD = receiver<UploadMessage>('upload');

/** From the upload slots: a slot is granted. */
export interface OpenUpload extends UploadFacts {
  readonly type: 'openUpload';
  /** The waiting command at the upload slots. */
  readonly asker: string;
}

/** From the upload slots: the slot of this upload is free. */
export interface SlotFreed {
  readonly type: 'slotFreed';
  readonly uploadKey: string;
}

/** From the account: it is blocked, and its open upload makes room for others. */
interface DropUpload {
  readonly type: 'dropUpload';
}

/** Message to itself: publish the bytes and complete the message. */
export interface FinishUpload {
  readonly type: 'finishUpload';
  readonly uploadKey: string;
  /** Command that stored the last chunk: distinguishes a delivery in this run from one after a restart. */
  readonly storedBy: string;
}

/** Message to itself, and timer after a failure: remove bytes and message. */
export interface CleanUp {
  readonly type: 'cleanUp';
  readonly uploadKey: string;
}

export type UploadMessage = OpenUpload | SlotFreed | DropUpload | FinishUpload | CleanUp;

/** The reply to `storeChunk`; `fileId` once the upload is complete. */
export interface StoredChunk {
  readonly chunkNumber: number;
  readonly fileId: string | null;
}
