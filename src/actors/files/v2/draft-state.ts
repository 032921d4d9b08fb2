/**
 * State of a v2 upload (spec 2.7, 4.7): its slot among the owner's drafts, the pending chat message, the bytes kept,
 * the newest stream. A slot is reused when its draft has ended, so that drafts do not accumulate.
 */
import { type FileSegment, segmentsUpTo } from '../../../domain/files/segments.ts';

/**
 * - `free`: no draft. `opening`: the chat module was asked for the pending message.
 * - `pending`: bytes may come. `receiving`: a stream has begun; after a crash also without one.
 * - `completing`: all bytes are here, they are being published and the message completed.
 * - `removing`: given up; message and bytes are being removed.
 */
export type DraftPhase = 'free' | 'opening' | 'pending' | 'receiving' | 'completing' | 'removing';

/** Facts about the file that the uploader gave. */
export interface DraftFacts {
  readonly ownerId: string;
  readonly name: string;
  /** Null: not declared. */
  readonly sizeBytes: number | null;
  /** Null: the owner's personal storage (spec 4.7 rule 1). */
  readonly chatId: string | null;
  readonly message: string | null;
  readonly linkedMessageId: string | null;
  /** Verbatim, unchecked. */
  readonly declaredCrc32: string | null;
}

/** Facts about a complete upload, with which a repeat of its end is compared. */
export interface FinishedUpload {
  readonly ownerId: string;
  readonly fileId: string;
  readonly sizeBytes: number;
  /** Unsigned, of the whole file. */
  readonly crc32: number;
  /** Beginning of the last stream, and the checksum of the bytes before it. */
  readonly lastOffsetBytes: number;
  readonly prefixCrc32: number;
  /** It is remembered until then. */
  readonly untilMs: number;
}

export interface Draft extends DraftFacts {
  /** The gateway's name of the upload at the chat module. */
  readonly uploadKey: string;
  /** Null until the pending message is there. */
  readonly fileId: string | null;
  readonly expiresMs: number;
  /** Bytes from the beginning on that are kept, and their checksum, unsigned. */
  readonly receivedBytes: number;
  readonly crc32: number;
  /** Digest of the whole file, hexadecimal; absent where it is not known. */
  readonly sha256?: string;
  /** The running stream keeps its bytes when it breaks off (resume); otherwise its end is the draft's. */
  readonly keeps: boolean;
  /** Beginning of the newest stream, and the checksum of the bytes before it. Absent in snapshots of 0.2.0. */
  readonly lastOffsetBytes?: number;
  readonly prefixCrc32?: number;
  /** Places of the kept bytes, in their order: parts, or objects of a bucket. Absent: in the one part of the file. */
  readonly segments?: readonly FileSegment[];
  /** The command that waits for the completion. */
  readonly waiter: string | null;
  /** Attempts to remove it that failed. */
  readonly failures: number;
}

export interface DraftState {
  /** Id of the actor: `slotIdOf`. */
  readonly place: string;
  readonly phase: DraftPhase;
  /** Fencing number of the newest stream. It rises through all drafts of this slot, so that no late command counts. */
  readonly stream: number;
  readonly draft: Draft | null;
  /** Last draft of a free slot, if that became complete. A new draft replaces it. */
  readonly finished?: FinishedUpload;
}

export type DraftEvent =
  | {
      readonly type: 'draftOpened';
      readonly facts: DraftFacts;
      readonly uploadKey: string;
      readonly expiresMs: number;
    }
  | { readonly type: 'draftPending'; readonly fileId: string; readonly expiresMs: number }
  /** Bytes from `offsetBytes` on are no longer kept: the stream writes over them. */
  | {
      readonly type: 'streamBegun';
      readonly offsetBytes: number;
      readonly crc32: number;
      readonly keeps: boolean;
      /** Places of the kept bytes, and last that of the stream. */
      readonly segments?: readonly FileSegment[];
    }
  | {
      readonly type: 'bytesKept';
      readonly receivedBytes: number;
      readonly crc32: number;
      /** The stream continues. */
      readonly more: boolean;
      /** It does not, and still may write into its segment. */
      readonly isLate?: true;
      /** The objects of a bucket that hold the bytes. */
      readonly pieces?: readonly FileSegment[];
    }
  | {
      readonly type: 'bodyFinished';
      readonly sizeBytes: number;
      readonly crc32: number;
      readonly sha256?: string;
      readonly pieces?: readonly FileSegment[];
      readonly waiter: string;
    }
  | { readonly type: 'draftGivenUp' }
  | { readonly type: 'removalFailed' }
  /** Complete, removed or never begun: the slot is free. */
  | { readonly type: 'draftEnded'; readonly finished?: FinishedUpload };

/** The actor of one of an owner's slots, counted from 0. */
export function slotIdOf(ownerId: string, slot: number): string {
  return `${ownerId}.${slot}`;
}

export function isSlotOf(place: string, ownerId: string): boolean {
  return place.startsWith(`${ownerId}.`);
}

export function freeSlot(place: string, stream = 0, finished?: FinishedUpload): DraftState {
  return { place, phase: 'free', stream, draft: null, ...(finished === undefined ? {} : { finished }) };
}

/** Returns the upload of this owner's file that a free slot remembers. */
export function finishedUploadOf(
  { finished }: DraftState,
  { ownerId, fileId }: { readonly ownerId: string; readonly fileId: string },
): FinishedUpload | undefined {
  return finished?.ownerId === ownerId && finished.fileId === fileId ? finished : undefined;
}

export function evolveDraft(state: DraftState, event: DraftEvent): DraftState {
  if (event.type === 'draftOpened') return openedDraft(state, event);
  const { draft } = state;
  if (event.type === 'draftEnded') return freeSlot(state.place, state.stream, event.finished);
  if (draft === null) return freeSlot(state.place, state.stream);
  switch (event.type) {
    case 'draftPending':
      return {
        ...state,
        phase: 'pending',
        draft: { ...draft, fileId: event.fileId, expiresMs: event.expiresMs },
      };
    case 'streamBegun': {
      const { offsetBytes, crc32, keeps, segments } = event;
      const { segments: _, ...rest } = draft;
      return {
        ...state,
        phase: 'receiving',
        stream: state.stream + 1,
        draft: {
          ...rest,
          ...(segments === undefined ? {} : { segments }),
          receivedBytes: offsetBytes,
          crc32,
          keeps,
          lastOffsetBytes: offsetBytes,
          prefixCrc32: crc32,
        },
      };
    }
    case 'bytesKept': {
      const { receivedBytes, crc32, more, isLate, pieces } = event;
      const phase = more ? state.phase : 'pending';
      const segments = segmentsOf(draft, pieces, receivedBytes, crc32, !more && isLate !== true);
      return { ...state, phase, draft: { ...draft, receivedBytes, crc32, ...segments } };
    }
    case 'bodyFinished': {
      const { sizeBytes, crc32, sha256, pieces, waiter } = event;
      const digest = sha256 === undefined ? {} : { sha256 };
      const segments = segmentsOf(draft, pieces, sizeBytes, crc32, true);
      const whole = { ...draft, receivedBytes: sizeBytes, crc32, ...segments, ...digest, waiter };
      return { ...state, phase: 'completing', draft: whole };
    }
    case 'draftGivenUp':
      return { ...state, phase: 'removing', draft: { ...draft, waiter: null } };
    case 'removalFailed':
      return { ...state, draft: { ...draft, failures: draft.failures + 1 } };
  }
}

/**
 * Returns the segments of a file after a change; nothing for a file without them. `ended`: the stream of the last one
 * writes no more. Pieces replace those of before.
 */
function segmentsOf(
  { segments }: Draft,
  pieces: readonly FileSegment[] | undefined,
  endBytes: number,
  crc32: number,
  ended: boolean,
): Pick<Draft, 'segments'> {
  if (pieces !== undefined) return { segments: pieces };
  return segments === undefined ? {} : { segments: segmentsUpTo(segments, { endBytes, crc32, ended }) };
}

function openedDraft(state: DraftState, event: Extract<DraftEvent, { type: 'draftOpened' }>): DraftState {
  const { facts, uploadKey, expiresMs } = event;
  const nothingYet = { fileId: null, receivedBytes: 0, crc32: 0, keeps: false, waiter: null, failures: 0 };
  const { place, stream } = state;
  return { place, stream, phase: 'opening', draft: { ...facts, uploadKey, expiresMs, ...nothingYet } };
}
