/** Opens a v1 upload: disk space, the pending message, an empty part file; then UploadSlots is notified. */
import type { ErrorName } from '../../../domain/errors.ts';
import { mayHaveMessage } from '../../../domain/files/files.ts';
import { msOfId } from '../../../domain/ids.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import { type Message, type Outcome, runOf, type Timer, type Turn } from '../../runtime/actor.ts';
import type { Ports } from '../../runtime/ports.ts';
import { messageTo } from '../../runtime/protocol.ts';
import { cleanUpMessage, EXPIRY_TIMER, type ExpireUpload } from './upload-ending.ts';
import type { OpenUpload } from './upload-messages.ts';
import { UPLOAD_SLOTS, UPLOAD_SLOTS_ID, type UploadPrepared } from './upload-slots.ts';
import { evolveUpload, expiryMs, LEFTOVERS_MAX, type UploadEvent, type UploadState } from './upload-state.ts';

/** A call between nodes is given up after so long. */
const WAITED_MS = 5 * SECOND_MS;

/** Answers of the ports; `fileId` when there is a message, `tried` when there may be one. */
export interface Prepared {
  readonly type: 'prepared';
  readonly command: OpenUpload;
  readonly error: ErrorName | null;
  readonly fileId: string | null;
  readonly tried: boolean;
}

/**
 * Commits nothing by itself: after a crash before the ports have answered, the message of UploadSlots is delivered again.
 * No caller waits for the reply then, so the upload is abandoned: its slot must not block the client's next request.
 */
export function openUpload(
  { userId, current, leftovers }: UploadState,
  command: OpenUpload,
  turn: Turn,
): Outcome<UploadEvent, null, Prepared> {
  const { uploadKey } = command;
  if (current !== null) {
    const error = current.uploadKey === uploadKey ? null : 'AlreadyDownload';
    return { send: [notifySlots(command, error)] };
  }
  if (isAbandoned(command, turn)) {
    return {
      events: [{ type: 'leftBehind', uploadKey, fileId: null }],
      send: [notifySlots(command, 'ChartApiFileError'), cleanUpMessage(userId, uploadKey)],
    };
  }
  if (leftovers.length >= LEFTOVERS_MAX) return { send: [notifySlots(command, 'ChartApiFileError')] };
  return { next: (ports) => prepare(userId, command, ports) };
}

/** The caller waits in another run: a former one, or that of another node, where it does not wait for longer than a call. */
function isAbandoned({ asker, uploadKey }: OpenUpload, { commandId, nowMs, hasPeers }: Turn): boolean {
  if (runOf(asker) === runOf(commandId)) return false;
  return !hasPeers || nowMs - msOfId(uploadKey) > WAITED_MS;
}

async function prepare(userId: string, command: OpenUpload, { files, chatFiles }: Ports): Promise<Prepared> {
  const { uploadKey, name, sizeBytes, chatId, message, linkedMessageId } = command;
  const failed = (error: ErrorName, fileId: string | null, tried: boolean): Prepared => {
    files?.release(uploadKey);
    return { type: 'prepared', command, error, fileId, tried };
  };
  if (files === undefined || chatFiles === undefined) return failed('ChartApiFileError', null, false);
  const room = await files.reserve(uploadKey, sizeBytes);
  if (!room.ok) return failed(room.error, null, false);
  const pending = await chatFiles.create({
    uploadKey,
    userId,
    chatId,
    name,
    sizeBytes,
    ...(message === null ? {} : { message }),
    ...(linkedMessageId === null ? {} : { linkedMessageId }),
  });
  if (!pending.ok) return failed(pending.error, null, mayHaveMessage(pending.error));
  const { fileId } = pending.value;
  const made = await files.create({ owner: userId, fileId });
  if (!made.ok) return failed(made.error, fileId, true);
  return { type: 'prepared', command, error: null, fileId, tried: true };
}

export function prepared(
  state: UploadState,
  { command, error, fileId, tried }: Prepared,
  turn: Turn,
): Outcome<UploadEvent, null, ExpireUpload> {
  const { uploadKey, uploadId, sizeBytes } = command;
  if (error !== null || fileId === null) {
    const send: Message[] = [notifySlots(command, error ?? 'InternalError')];
    if (!tried) return { send };
    return {
      events: [{ type: 'leftBehind', uploadKey, fileId }],
      send: [...send, cleanUpMessage(state.userId, uploadKey)],
    };
  }
  const opened: UploadEvent = {
    type: 'uploadOpened',
    uploadKey,
    uploadId,
    sizeBytes,
    fileId,
    utcMs: turn.nowMs,
  };
  return {
    events: [opened],
    timers: expiryTimer(evolveUpload(state, opened), turn),
    send: [notifySlots(command, null)],
  };
}

/** Checks the upload when it would expire; later activity only moves the next check. */
export function expiryTimer({ current }: UploadState, turn: Turn): Timer<ExpireUpload>[] {
  if (current === null) return [];
  const command: ExpireUpload = { type: 'expireUpload', uploadKey: current.uploadKey };
  return [{ name: EXPIRY_TIMER, dueMs: expiryMs(current, turn), command }];
}

function notifySlots({ uploadKey, asker }: OpenUpload, error: ErrorName | null): Message {
  const command: UploadPrepared = { type: 'uploadPrepared', uploadKey, asker, error };
  return messageTo(UPLOAD_SLOTS, UPLOAD_SLOTS_ID, command);
}
