/**
 * The streams of a v2 upload: which one may speak, where it begins, what it leaves behind. A stream has a fencing
 * number; a newer one of the same draft makes every later word of the older one void.
 */
import { type FileKey, fileSizeMaxBytes } from '../../../domain/files/files.ts';
import {
  continues,
  crc32At,
  crc32Before,
  cutRange,
  type FileSegment,
  piecesUpTo,
  segmentKey,
  segmentsWithStream,
} from '../../../domain/files/segments.ts';
import { Later, type Outcome, type Refusal, refuse, type Turn } from '../../runtime/actor.ts';
import type { PortResult, Ports } from '../../runtime/ports.ts';
import { giveUp, messageOf, type UploadedFile } from './draft-ending.ts';
import {
  type Draft,
  type DraftEvent,
  type DraftState,
  type FinishedUpload,
  finishedUploadOf,
} from './draft-state.ts';

/** Streams of one draft that broke off without an end message, on nodes that were paused or died. */
const SEGMENTS_MAX = 64;

const PLACES = { segments: segmentsWithStream, pieces: piecesUpTo } as const;

/** A stream that has not reported its end may still write. */
const LATE = { isLate: true } as const;

interface BeginStream {
  readonly type: 'beginStream';
  readonly ownerId: string;
  readonly fileId: string;
  readonly offsetBytes: number;
  /** The offset has to be the end of what is kept; otherwise it may lie before it, and what follows is written anew. */
  readonly appends: boolean;
  /** True if the received bytes are kept when the stream breaks off. */
  readonly keeps: boolean;
  /**
   * Streams of other nodes write too. `segments`: this one writes a part of its own. `pieces`: it sends objects to a
   * bucket, which never change.
   */
  readonly places?: 'segments' | 'pieces';
  /** `segments`, as nodes of earlier builds of 0.2.0 say it and understand it. */
  readonly segmented?: true;
}

/** The reply to `beginStream`. Not begun: the bytes that are kept end elsewhere, or the file became complete meanwhile. */
export type StreamBegun =
  | {
      readonly begun: true;
      readonly stream: number;
      /** Key of the part that the stream writes. */
      readonly key: FileKey;
      /**
       * Segments at the beginning. The last one of parts is the stream's; pieces hold the kept bytes. Absent: the file
       * has one part.
       */
      readonly segments?: readonly FileSegment[];
      /** Declared with the draft; null: not. */
      readonly sizeBytes: number | null;
      readonly offsetBytes: number;
      /** CRC-32 of the bytes before the offset. */
      readonly crc32: number;
    }
  | { readonly begun: false; readonly offsetBytes: number }
  | { readonly begun: false; readonly finished: FinishedUpload };

interface PrefixChecked {
  readonly type: 'prefixChecked';
  readonly command: BeginStream;
  readonly uploadKey: string;
  /** The newest stream when the question was asked. */
  readonly stream: number;
  readonly keptBytes: number;
  /** CRC-32 of the kept bytes and of those before the offset, as they lie on the disk. */
  readonly result: PortResult<readonly (number | undefined)[]>;
}

/** Words of a running stream. Void when a newer one has begun or the draft has ended: `UploadConflict`, `InvalidID`. */
interface FromStream {
  readonly fileId: string;
  readonly stream: number;
}

interface KeepBytes extends FromStream {
  readonly type: 'keepBytes';
  readonly receivedBytes: number;
  readonly crc32: number;
  /** The stream continues. */
  readonly more: boolean;
  /** It does not, and a task of it that is not done in time may still write. */
  readonly isLate?: true;
  /** The objects of a bucket that hold the bytes. */
  readonly pieces?: readonly FileSegment[];
}

/** All bytes are here. Answered when the file is complete: `UploadedFile`. */
interface FinishBody extends FromStream {
  readonly type: 'finishBody';
  readonly sizeBytes: number;
  readonly crc32: number;
  /** Hexadecimal, where it was computed. */
  readonly sha256?: string;
  /** The same as in `KeepBytes`. */
  readonly pieces?: readonly FileSegment[];
}

/** Broken off or refused, with nothing to keep: the draft goes with it. */
interface EndStream extends FromStream {
  readonly type: 'endStream';
}

export type StreamCommand = BeginStream | PrefixChecked | KeepBytes | FinishBody | EndStream;

/** The draft, while bytes may come for it and it is this owner's file. */
export function openDraftOf(
  state: DraftState,
  { ownerId, fileId }: { readonly ownerId: string; readonly fileId: string },
): Draft | undefined {
  const { draft, phase } = state;
  const isOpen = phase === 'pending' || phase === 'receiving';
  return isOpen && draft?.ownerId === ownerId && draft.fileId === fileId ? draft : undefined;
}

/** The same while its file is being published. */
export function completingDraftOf(
  { draft, phase }: DraftState,
  { ownerId, fileId }: { readonly ownerId: string; readonly fileId: string },
): Draft | undefined {
  return phase === 'completing' && draft?.ownerId === ownerId && draft.fileId === fileId ? draft : undefined;
}

export function beginStream(
  state: DraftState,
  command: BeginStream,
): Outcome<DraftEvent, StreamBegun, PrefixChecked> | Refusal {
  const draft = openDraftOf(state, command);
  // The caller asks again when it is complete, and gets the first answer then.
  if (completingDraftOf(state, command) !== undefined)
    return refuse('UploadConflict', 'the file is being published');
  if (draft === undefined) return notOpen(state, command);
  const { uploadKey, receivedBytes: keptBytes } = draft;
  const { offsetBytes, appends } = command;
  if (appends ? offsetBytes !== keptBytes : offsetBytes > keptBytes) {
    return { reply: { begun: false, offsetBytes: keptBytes } satisfies StreamBegun };
  }
  const { stream } = state;
  const key: FileKey = { owner: command.ownerId, fileId: command.fileId };
  const segments = placesOf(command) === undefined ? undefined : segmentsOf(draft);
  if ((segments?.length ?? 0) >= SEGMENTS_MAX && segments?.at(-1)?.isOpen === true)
    return refuse('UploadConflict', 'too many of its streams broke off: drop the draft');
  return {
    next: async (ports) => ({
      type: 'prefixChecked',
      command,
      uploadKey,
      stream,
      keptBytes,
      result:
        segments === undefined
          ? await prepare(ports, key, keptBytes, offsetBytes)
          : await prepareSegments(ports, key, segments, draft, offsetBytes),
    }),
  };
}

function placesOf({ places, segmented }: BeginStream): BeginStream['places'] {
  return places ?? (segmented === true ? 'segments' : undefined);
}

/** Offset 0 starts an empty part file; any other offset re-reads the earlier bytes, which were not synced. */
async function prepare(
  { files }: Ports,
  key: FileKey,
  keptBytes: number,
  offsetBytes: number,
): Promise<PortResult<readonly (number | undefined)[]>> {
  if (files === undefined) return { ok: false, error: 'FileStorageFailed' };
  if (offsetBytes > 0) {
    return await files.hashRanges(key, [
      { positionBytes: 0, lengthBytes: keptBytes },
      { positionBytes: 0, lengthBytes: offsetBytes },
    ]);
  }
  const created = await files.create(key);
  return created.ok ? { ok: true, value: [] } : created;
}

/** A part without segments may have a writer of before: it gets no more bytes. */
function segmentsOf({ segments, receivedBytes, crc32 }: Draft): readonly FileSegment[] {
  if (segments !== undefined) return segments;
  return receivedBytes === 0 ? [] : [{ number: 0, endBytes: receivedBytes, crc32, isOpen: true }];
}

/**
 * Kept bytes of segments were synced: only where one is cut is it read. Nothing of them is changed. Of a bucket the whole piece
 * is compared with what was listed, since a checksum of its beginning would vouch for whatever it holds.
 */
async function prepareSegments(
  { files }: Ports,
  key: FileKey,
  segments: readonly FileSegment[],
  { crc32 }: Draft,
  offsetBytes: number,
): Promise<PortResult<readonly (number | undefined)[]>> {
  if (files === undefined) return { ok: false, error: 'FileStorageFailed' };
  const cut = cutRange(segments, offsetBytes);
  let found: number | undefined;
  if (cut !== undefined) {
    const hashed = await files.hashSegment(key, cut, offsetBytes);
    if (!hashed.ok) return hashed;
    found = hashed.value;
    if (files.isDurable) {
      const whole = await files.hashSegment(key, cut, cut.endBytes);
      if (!whole.ok) return whole;
      if (!continues(crc32Before(segments, cut), cut, whole.value)) found = undefined;
    }
  }
  const before = crc32At(segments, offsetBytes, found);
  return { ok: true, value: [before === undefined ? undefined : crc32, before] };
}

export function prefixChecked(
  state: DraftState,
  checked: PrefixChecked,
): Outcome<DraftEvent, StreamBegun> | Refusal {
  const { command, uploadKey, stream, keptBytes, result } = checked;
  const draft = openDraftOf(state, command);
  if (draft === undefined || draft.uploadKey !== uploadKey) return notOpen(state, command);
  if (state.stream !== stream || draft.receivedBytes !== keptBytes) return refuse('UploadConflict');
  if (!result.ok) return refuse(result.error);
  const { ownerId, fileId, offsetBytes, keeps } = command;
  const [keptCrc32, crc32 = 0] = result.value;
  if (offsetBytes > 0 && keptCrc32 !== draft.crc32) {
    // A crash took bytes that had not reached the disk: from the beginning, then.
    return {
      events: [{ type: 'bytesKept', receivedBytes: 0, crc32: 0, more: false, ...(draft.segments && LATE) }],
      reply: { begun: false, offsetBytes: 0 } satisfies StreamBegun,
    };
  }
  const place = { number: stream + 1, endBytes: offsetBytes, crc32 };
  const places = placesOf(command);
  const segments = places && PLACES[places](segmentsOf(draft), place);
  const listed = segments === undefined ? {} : { segments };
  const key: FileKey = { owner: ownerId, fileId };
  // Bytes on their way to a bucket are in a part of the node that receives it.
  const number = places === 'pieces' ? place.number : (segments?.at(-1)?.number ?? 0);
  const reply: StreamBegun = {
    begun: true,
    stream: stream + 1,
    key: segmentKey(key, number),
    ...listed,
    sizeBytes: draft.sizeBytes,
    offsetBytes,
    crc32,
  };
  return { events: [{ type: 'streamBegun', offsetBytes, crc32, keeps, ...listed }], reply };
}

/** A request that was under way when the file became complete gets the answer of a repeat. */
function notOpen(state: DraftState, command: BeginStream): Outcome<DraftEvent, StreamBegun> | Refusal {
  const finished = finishedUploadOf(state, command);
  return finished === undefined ? refuse('InvalidID') : { reply: { begun: false, finished } };
}

export function keepBytes(state: DraftState, command: KeepBytes): Outcome<DraftEvent, null> | Refusal {
  const fault = faultOf(state, command);
  if (fault !== undefined) return fault;
  const { receivedBytes, crc32, more, isLate, pieces } = command;
  const late = isLate === true ? LATE : {};
  const listed = pieces === undefined ? {} : { pieces };
  return { events: [{ type: 'bytesKept', receivedBytes, crc32, more, ...late, ...listed }], reply: null };
}

export function finishBody(
  state: DraftState,
  command: FinishBody,
  turn: Turn,
): Outcome<DraftEvent, UploadedFile> | Refusal {
  const fault = faultOf(state, command);
  if (fault !== undefined) return fault;
  const { sizeBytes, crc32, sha256, pieces } = command;
  const digest = sha256 === undefined ? {} : { sha256 };
  const listed = pieces === undefined ? {} : { pieces };
  const declared = state.draft?.sizeBytes ?? null;
  const refusal = sizeRefusal(sizeBytes, declared, fileSizeMaxBytes(turn.settings));
  if (refusal !== undefined) return giveUp(state, [{ commandId: turn.commandId, refusal }]);
  return {
    events: [{ type: 'bodyFinished', sizeBytes, crc32, ...digest, ...listed, waiter: turn.commandId }],
    send: [messageOf(state, 'completeDraft')],
    reply: new Later(turn.commandId),
  };
}

/**
 * Says why a whole body of this size is refused: 1301 as at create_draft, 1307 where it differs from the declared size.
 */
function sizeRefusal(sizeBytes: number, declaredBytes: number | null, maxBytes: number): Refusal | undefined {
  if (sizeBytes > maxBytes) return refuse('MaxFileSize');
  if (declaredBytes !== null && sizeBytes > declaredBytes) return refuse('WrongPart');
  if (declaredBytes !== null && sizeBytes < declaredBytes) return refuse('ShortPart');
  return sizeBytes === 0 ? refuse('EmptyFile') : undefined;
}

/** Its word counts no more: then there is nothing to end. */
export function endStream(state: DraftState, command: EndStream): Outcome<DraftEvent, null> {
  return faultOf(state, command) === undefined ? { ...giveUp(state), reply: null } : { reply: null };
}

function faultOf({ phase, draft, stream }: DraftState, command: FromStream): Refusal | undefined {
  if (draft === null || draft.fileId !== command.fileId) return refuse('InvalidID');
  if (stream !== command.stream) return refuse('UploadConflict');
  return phase === 'receiving' ? undefined : refuse('InvalidID');
}
