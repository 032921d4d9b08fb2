/**
 * End of a v2 upload: its bytes are published and its message completed, or both are removed. Each way is a durable
 * message of the draft to itself whose work may be repeated; a removal is tried until it has succeeded.
 */
import {
  COMPLETION_RETRY_MS,
  completionRefusal,
  type FileKey,
  isUndecided,
  repeatedCompletionError,
} from '../../../domain/files/files.ts';
import { type FileSegment, segmentKey, wholeSegment } from '../../../domain/files/segments.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import { type Answer, type Message, type Outcome, refuse, runOf, type Turn } from '../../runtime/actor.ts';
import type { FilePort, PortResult, Ports } from '../../runtime/ports.ts';
import { messageTo, receiver } from '../../runtime/protocol.ts';
import {
  type Draft,
  type DraftEvent,
  type DraftState,
  type FinishedUpload,
  slotIdOf,
} from './draft-state.ts';

/** Receives its own messages, and those of its owner's account. */
export const DRAFT = receiver<CompleteDraft | RemoveDraft | DropOwned>('draft');

/** The timer that ends a draft that is not completed in time. */
export const EXPIRY = 'expiry';
const RETRY = 'retry';
/** A complete upload answers a repeat of its end for so long, as v1 does. */
const FINISHED_MS = 10 * MINUTE_MS;
const RETRY_FIRST_MS = 2 * SECOND_MS;
const RETRY_MAX_MS = 10 * MINUTE_MS;
/** Doublings after which the longest wait is reached anyway. */
const DOUBLINGS_MAX = Math.ceil(Math.log2(HOUR_MS / RETRY_FIRST_MS));

export interface CompleteDraft {
  readonly type: 'completeDraft';
  readonly uploadKey: string;
}

/** From the account of the owner, which was removed. */
export interface DropOwned {
  readonly type: 'dropOwned';
}

export interface DraftCompleted {
  readonly type: 'draftCompleted';
  readonly uploadKey: string;
  readonly result: PortResult<null>;
}

export interface RemoveDraft {
  readonly type: 'removeDraft';
  readonly uploadKey: string;
}

export interface DraftRemoved {
  readonly type: 'draftRemoved';
  readonly uploadKey: string;
  readonly removed: boolean;
}

/** A completed upload: the reply to `finishBody`. */
export interface UploadedFile {
  readonly fileId: string;
  readonly sizeBytes: number;
  /** Unsigned, computed by the gateway. */
  readonly crc32: number;
}

const DONE: PortResult<null> = { ok: true, value: null };
const NO_STORAGE: PortResult<null> = { ok: false, error: 'FileStorageFailed' };
const NO_MODULE: PortResult<null> = { ok: false, error: 'ChartApiFileError' };

export function messageOf(state: DraftState, type: 'completeDraft' | 'removeDraft'): Message {
  return messageTo(DRAFT, state.place, { type, uploadKey: state.draft?.uploadKey ?? '' });
}

/** Removes message and bytes. A caller who waits for the completion gets `answers`. */
export function giveUp(state: DraftState, answers: readonly Answer[] = []): Outcome<DraftEvent, never> {
  return {
    events: [{ type: 'draftGivenUp' }],
    send: [messageOf(state, 'removeDraft')],
    timers: [{ name: EXPIRY, dueMs: null }],
    answers,
  };
}

/** Drafts of a removed account end, whichever slots hold one. */
export function draftsDropped(ownerId: string, settings: SettingsReader): { events: []; send: Message[] } {
  const slots = Array.from({ length: settings.get('DraftsPerUser') }, (_, slot) => slotIdOf(ownerId, slot));
  return { events: [], send: slots.map((slot) => messageTo(DRAFT, slot, { type: 'dropOwned' })) };
}

/** One that completes is left alone: the chat module knows of it, and of the removal of the account. */
export function dropOwned(state: DraftState): Outcome<DraftEvent, null> {
  const { phase } = state;
  const isOpen = phase === 'opening' || phase === 'pending' || phase === 'receiving';
  return isOpen ? giveUp(state) : {};
}

export function completeDraft(
  state: DraftState,
  { uploadKey }: CompleteDraft,
  turn: Turn,
): Outcome<DraftEvent, null, DraftCompleted> {
  const { draft, phase } = state;
  if (phase !== 'completing' || draft?.uploadKey !== uploadKey) return { reply: null };
  const restarted = draft.waiter === null || runOf(draft.waiter) !== runOf(turn.commandId);
  return {
    next: async (ports) => ({
      type: 'draftCompleted',
      uploadKey,
      result: await publishAndComplete(ports, draft, restarted),
    }),
  };
}

/**
 * Publishes the bytes first, so that a visible message always has its file. After a restart it hashes them before: a
 * power cut may leave the part its size and not its bytes, which publishing syncs.
 */
async function publishAndComplete(
  { files, chatFiles }: Ports,
  draft: Draft,
  restarted: boolean,
): Promise<PortResult<null>> {
  const { ownerId, fileId, receivedBytes, crc32, sha256 } = draft;
  const digest = sha256 === undefined ? {} : { sha256 };
  if (fileId === null || files === undefined) return NO_STORAGE;
  if (chatFiles === undefined) return NO_MODULE;
  const key = { owner: ownerId, fileId };
  const lost = restarted ? await lostBytes(files, key, draft) : undefined;
  if (lost !== undefined) return lost;
  const published = await publish(files, key, draft);
  if (!published.ok) return published;
  const completed = await chatFiles.complete({
    fileId,
    userId: ownerId,
    sizeBytes: receivedBytes,
    crc32,
    ...digest,
  });
  if (!completed.ok && restarted) return { ok: false, error: repeatedCompletionError(completed.error) };
  // The file is there whatever becomes of its parts: a sweep finds those that stay.
  if (completed.ok && draft.segments !== undefined)
    await files.removeSegments(key, numbersOf(draft.segments));
  return completed;
}

/** Says why the part cannot be published; undefined where it can, or where it is no part any more. */
async function lostBytes(
  files: FilePort,
  key: FileKey,
  { segments, receivedBytes, crc32 }: Draft,
): Promise<PortResult<null> | undefined> {
  const whole = segments === undefined ? undefined : wholeSegment(segments);
  // Joined segments are hashed as they are copied, and a bucket has what was acknowledged.
  if (files.isDurable || (segments !== undefined && whole === undefined)) return undefined;
  const part = whole === undefined ? key : segmentKey(key, whole.number);
  const hashed = await files.hashRanges(part, [{ positionBytes: 0, lengthBytes: receivedBytes }]);
  if (!hashed.ok) return hashed;
  // Undefined: the part was published before, or is too short to be.
  const [found] = hashed.value;
  return found !== undefined && found !== crc32 ? NO_STORAGE : undefined;
}

async function publish(
  files: FilePort,
  key: FileKey,
  { segments, receivedBytes }: Draft,
): Promise<PortResult<null>> {
  if (segments === undefined) return await files.publish(key, receivedBytes);
  const joined = await files.publishSegments(key, segments);
  if (!joined.ok) return joined;
  return joined.value ? DONE : NO_STORAGE;
}

function numbersOf(segments: readonly FileSegment[]): number[] {
  return segments.map(({ number }) => number);
}

export function draftCompleted(
  state: DraftState,
  { uploadKey, result }: DraftCompleted,
  turn: Turn,
): Outcome<DraftEvent, null, CompleteDraft, UploadedFile> {
  const { draft, phase } = state;
  if (phase !== 'completing' || draft === null || draft.uploadKey !== uploadKey) return { reply: null };
  const { waiter, fileId, ownerId, receivedBytes, crc32 } = draft;
  if (!result.ok) {
    const again = isUndecided(result.error);
    const refusal = refuse(again ? 'TaskTimedOut' : completionRefusal(result.error));
    const answers = waiter === null ? [] : [{ commandId: waiter, refusal }];
    if (!again) return giveUp(state, answers);
    const dueMs = turn.nowMs + COMPLETION_RETRY_MS;
    return { answers, timers: [{ name: RETRY, dueMs, command: { type: 'completeDraft', uploadKey } }] };
  }
  const reply: UploadedFile = { fileId: fileId ?? '', sizeBytes: receivedBytes, crc32 };
  return {
    ...ended(state, finishedOf(draft, turn.nowMs)),
    answers: waiter === null ? [] : [{ commandId: waiter, reply }],
    audit: [
      {
        utcMs: turn.nowMs,
        event: 'file_uploaded',
        userId: ownerId,
        fields: { fileId, sizeBytes: receivedBytes, crc32 },
      },
    ],
    reply: null,
  };
}

export function removeDraft(
  state: DraftState,
  { uploadKey }: RemoveDraft,
): Outcome<DraftEvent, null, DraftRemoved> {
  const { draft, phase } = state;
  if (phase !== 'removing' || draft?.uploadKey !== uploadKey) return { reply: null };
  return {
    next: async (ports) => ({
      type: 'draftRemoved',
      uploadKey,
      removed: await removeBoth(ports, draft),
    }),
  };
}

/** Neither waits for the other: bytes give their room back also while the chat module is down. */
async function removeBoth({ files, chatFiles }: Ports, draft: Draft): Promise<boolean> {
  const { ownerId, fileId, uploadKey, segments = [] } = draft;
  const key = fileId === null ? undefined : { owner: ownerId, fileId };
  const results = await Promise.all([
    chatFiles?.cancel(uploadKey) ?? DONE,
    (key && files?.remove(key)) ?? DONE,
    (key && segments.length > 0 ? files?.removeSegments(key, numbersOf(segments)) : undefined) ?? DONE,
  ]);
  return results.every(({ ok }) => ok);
}

export function draftRemoved(
  state: DraftState,
  { uploadKey, removed }: DraftRemoved,
  turn: Turn,
): Outcome<DraftEvent, null, RemoveDraft> {
  const { draft, phase } = state;
  if (phase !== 'removing' || draft === null || draft.uploadKey !== uploadKey) return { reply: null };
  if (removed) return { ...ended(state), reply: null };
  const waitMs = Math.min(RETRY_FIRST_MS * 2 ** Math.min(draft.failures, DOUBLINGS_MAX), RETRY_MAX_MS);
  return {
    events: [{ type: 'removalFailed' }],
    timers: [{ name: RETRY, dueMs: turn.nowMs + waitMs, command: { type: 'removeDraft', uploadKey } }],
    reply: null,
  };
}

function finishedOf(draft: Draft, nowMs: number): FinishedUpload | undefined {
  const { ownerId, fileId, receivedBytes: sizeBytes, crc32, lastOffsetBytes, prefixCrc32 } = draft;
  if (fileId === null || lastOffsetBytes === undefined || prefixCrc32 === undefined) return undefined;
  const untilMs = nowMs + FINISHED_MS;
  return { ownerId, fileId, sizeBytes, crc32, lastOffsetBytes, prefixCrc32, untilMs };
}

/** Frees the slot and the file id. */
function ended({ place, draft }: DraftState, finished?: FinishedUpload): Outcome<DraftEvent, never> {
  const fileId = draft?.fileId ?? null;
  return {
    events: [{ type: 'draftEnded', ...(finished === undefined ? {} : { finished }) }],
    claims:
      fileId === null
        ? []
        : [{ index: 'draft', key: fileId, owner: null, replaces: place, onConflict: 'InternalError' }],
    timers: [
      { name: EXPIRY, dueMs: null },
      { name: RETRY, dueMs: null },
    ],
  };
}
