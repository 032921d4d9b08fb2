/**
 * End of a v1 upload: completed, cancelled, expired or failed. UploadSlots frees the slot before the reply, so that a
 * client that learns of the end can open the next upload at once. Bytes and message of a failed upload are removed by a
 * durable message to the same actor, retried until both are gone; a new upload does not wait for that.
 */
import { ERRORS, type ErrorName } from '../../../domain/errors.ts';
import { MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import { type Answer, Later, type Message, type Outcome, type Turn } from '../../runtime/actor.ts';
import type { Ports } from '../../runtime/ports.ts';
import { messageTo } from '../../runtime/protocol.ts';
import { type CleanUp, type SlotFreed, type StoredChunk, UPLOAD } from './upload-messages.ts';
import { type FreeSlot, UPLOAD_SLOTS, UPLOAD_SLOTS_ID } from './upload-slots.ts';
import {
  expiryMs,
  type Leftover,
  type Upload,
  type UploadEnding,
  type UploadEvent,
  type UploadState,
} from './upload-state.ts';

export const EXPIRY_TIMER = 'expiry';
const RETRY_FIRST_MS = 2 * SECOND_MS;
const RETRY_MAX_MS = 5 * MINUTE_MS;

/** Ends an expired upload: sent by the timer, or by a caller who needs the slot and waits for the reply. */
export interface ExpireUpload {
  readonly type: 'expireUpload';
  readonly uploadKey: string;
  readonly waits?: true;
}

export interface CleanedUp {
  readonly type: 'cleanedUp';
  readonly uploadKey: string;
  readonly clean: boolean;
}

export function cleanUpMessage(userId: string, uploadKey: string): Message {
  const command: CleanUp = { type: 'cleanUp', uploadKey };
  return messageTo(UPLOAD, userId, command);
}

/** `waiter` is answered when the slot is free. */
export function endUpload(
  state: UploadState,
  upload: Upload,
  ending: UploadEnding,
  waiter: string,
): Outcome<UploadEvent, never>;
export function endUpload(
  state: UploadState,
  upload: Upload,
  ending: UploadEnding,
  waiter?: string,
): Outcome<UploadEvent, null>;
export function endUpload(
  { userId }: UploadState,
  { uploadKey, fileId }: Upload,
  ending: UploadEnding,
  waiter?: string,
): Outcome<UploadEvent, null> {
  const events: UploadEvent[] = [{ type: 'uploadEnded', ending }];
  const free: FreeSlot = { type: 'freeSlot', uploadKey, userId };
  const send: Message[] = [messageTo(UPLOAD_SLOTS, UPLOAD_SLOTS_ID, free)];
  if (waiter !== undefined) events.push({ type: 'waiterJoined', commandId: waiter });
  if (ending !== 'complete') {
    events.push({ type: 'leftBehind', uploadKey, fileId });
    send.push(cleanUpMessage(userId, uploadKey));
  }
  return {
    events,
    send,
    timers: [{ name: EXPIRY_TIMER, dueMs: null }],
    reply: waiter === undefined ? null : new Later(waiter),
  };
}

export function expireUpload(
  state: UploadState,
  { uploadKey, waits }: ExpireUpload,
  turn: Turn,
): Outcome<UploadEvent, null, ExpireUpload> {
  const { current } = state;
  if (current?.uploadKey !== uploadKey || current.phase === 'completing') return { reply: null };
  if (current.phase === 'leaving') {
    if (waits !== true) return { reply: null };
    const { commandId } = turn;
    return { events: [{ type: 'waiterJoined', commandId }], reply: new Later(commandId) };
  }
  const dueMs = expiryMs(current, turn);
  if (turn.nowMs >= dueMs)
    return endUpload(state, current, 'expired', waits === true ? turn.commandId : undefined);
  if (waits === true) return { reply: null };
  return { timers: [{ name: EXPIRY_TIMER, dueMs, command: { type: 'expireUpload', uploadKey } }] };
}

/** One that completes is refused by the chat module's port, which asks whether the user is blocked. */
export function dropUpload(state: UploadState): Outcome<UploadEvent, null> {
  const { current } = state;
  return current?.phase === 'open' ? endUpload(state, current, 'cancelled') : {};
}

export function slotFreed(
  { current }: UploadState,
  { uploadKey }: SlotFreed,
  turn: Turn,
): Outcome<UploadEvent, null, never, StoredChunk | null> {
  if (current?.uploadKey !== uploadKey || current.phase !== 'leaving') return {};
  return {
    events: [{ type: 'uploadLeft', utcMs: turn.nowMs }],
    answers: current.waiters.map((commandId) => answerOf(current, commandId)),
  };
}

function answerOf({ ending, lastChunk, fileId }: Upload, commandId: string): Answer<StoredChunk | null> {
  if (ending === 'complete' && lastChunk !== null)
    return { commandId, reply: { chunkNumber: lastChunk, fileId } };
  return isErrorName(ending) ? { commandId, refusal: { refuse: ending } } : { commandId, reply: null };
}

function isErrorName(ending: UploadEnding | null): ending is ErrorName {
  return ending !== null && Object.hasOwn(ERRORS, ending);
}

/** Writes nothing by itself: after a crash the message or the timer comes again. */
export function cleanUp(
  { userId, leftovers }: UploadState,
  { uploadKey }: CleanUp,
): Outcome<UploadEvent, null, CleanedUp> {
  const leftover = leftovers.find((one) => one.uploadKey === uploadKey);
  if (leftover === undefined) return {};
  return {
    next: async (ports) => ({
      type: 'cleanedUp',
      uploadKey,
      clean: await removeBoth(userId, leftover, ports),
    }),
  };
}

/** Neither waits for the other: bytes give their room back also while the chat module is down. */
async function removeBoth(
  owner: string,
  { uploadKey, fileId }: Leftover,
  { files, chatFiles }: Ports,
): Promise<boolean> {
  const bytes = fileId === null ? Promise.resolve(undefined) : files?.remove({ owner, fileId });
  const [removed, cancelled] = await Promise.all([bytes, chatFiles?.cancel(uploadKey)]);
  const gone = fileId === null || removed?.ok === true;
  if (gone) files?.release(uploadKey);
  return gone && cancelled?.ok === true;
}

export function cleanedUp(
  { leftovers }: UploadState,
  { uploadKey, clean }: CleanedUp,
  turn: Turn,
): Outcome<UploadEvent, null, CleanUp> {
  const leftover = leftovers.find((one) => one.uploadKey === uploadKey);
  if (leftover === undefined) return {};
  if (clean) return { events: [{ type: 'cleaned', uploadKey }] };
  const dueMs = turn.nowMs + Math.min(RETRY_FIRST_MS * 2 ** leftover.failures, RETRY_MAX_MS);
  return {
    events: [{ type: 'cleaningFailed', uploadKey }],
    timers: [{ name: `clean:${uploadKey}`, dueMs, command: { type: 'cleanUp', uploadKey } }],
  };
}
