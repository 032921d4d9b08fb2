/**
 * Files in chats: a file is a message, and its id is the message's. The bytes are the gateway's; here are name, size,
 * checksum and, of a text file, what was handed over for reading.
 */
import { toIso } from '../domain/time.ts';
import { eventIdsFor } from './chat-messages.ts';
import { type Chat, type Message, visible } from './chat-model.ts';
import type { FileCreated, FileEnded } from './chat-records.ts';
import { memberOf, seatIn } from './chat-seat.ts';
import type { ChatState } from './chat-state.ts';
import { SandboxError } from './errors.ts';
import { limitOf, type ModuleCall, optionalText, requiredId, requiredText } from './module.ts';

const NAME_CHARACTERS_MAX = 255;
const TEXT_CHARACTERS_MAX = 4_096;
/** Of a text file; what is longer is cut by whoever hands it over. */
const CONTENT_CHARACTERS_MAX = 32_768;

/** Newest first. */
export function listFiles(chat: Chat, call: ModuleCall): object {
  const files = visible(chat).filter(({ file, deleted }) => file !== null && !deleted);
  return {
    files: files
      .slice(-limitOf(call.query, 50, 200))
      .reverse()
      .map(wireFile),
  };
}

export function fileInfo(state: ChatState, call: ModuleCall): object {
  return wireFile(readableFile(state, call));
}

export function readTextFile(state: ChatState, call: ModuleCall): object {
  const message = readableFile(state, call);
  const content = message.file?.content ?? null;
  if (content === null) throw new SandboxError('NoText');
  return { fileId: message.id, name: message.file?.name ?? '', text: content };
}

/** A pending file: nobody sees it until its bytes have arrived. */
export function createFile(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = seatIn(state, call, call.body['chatId']);
  const name = requiredText(call, 'name', NAME_CHARACTERS_MAX);
  const text = optionalText(call, 'text', TEXT_CHARACTERS_MAX) ?? '';
  const sizeBytes = call.body['sizeBytes'] ?? null;
  if (sizeBytes !== null && !isCount(sizeBytes))
    throw new SandboxError('BadRequest', 'sizeBytes is a whole number');
  const fileId = call.tick();
  const record: FileCreated = {
    module: 'chat',
    type: 'fileCreated',
    tick: fileId,
    utcMs: call.nowMs,
    fileId,
    chatId: chat.id,
    senderId: memberId,
    name,
    text,
    sizeBytes,
  };
  call.commit(record);
  return { fileId };
}

/** The bytes have arrived: the message is there for everybody. */
export function completeFile(state: ChatState, call: ModuleCall): object {
  const message = pendingFile(state, call);
  const { sizeBytes, crc32 } = call.body;
  if (!isCount(sizeBytes) || !isCount(crc32) || crc32 > 0xffff_ffff)
    throw new SandboxError('BadRequest', 'sizeBytes and crc32 are whole numbers');
  const content = optionalText(call, 'content', CONTENT_CHARACTERS_MAX) ?? null;
  const tick = call.tick();
  const eventIds = eventIdsFor(state.existing(message.chatId), tick, call);
  end(
    call,
    { fileId: message.id, complete: true, sizeBytes, crc32, content, eventIds },
    eventIds.at(-1) ?? tick,
  );
  return wireFile(message);
}

/** The upload was given up: the pending message goes. */
export function cancelFile(state: ChatState, call: ModuleCall): object {
  const { id: fileId } = pendingFile(state, call);
  end(call, { fileId, complete: false, sizeBytes: 0, crc32: 0, content: null, eventIds: [] }, call.tick());
  return { fileId };
}

function end(call: ModuleCall, facts: Omit<FileEnded, 'module' | 'type' | 'tick'>, tick: string): void {
  const record: FileEnded = { module: 'chat', type: 'fileEnded', tick, ...facts };
  call.commit(record);
}

/** A file in a chat of the caller. */
function readableFile(state: ChatState, call: ModuleCall): Message {
  const userId = memberOf(state, call);
  const message = state.messages.get(requiredId(call.query.get('fileId'), 'fileId'));
  const member = message !== undefined && state.chats.get(message.chatId)?.members.has(userId) === true;
  if (message?.file?.complete === true && !message.deleted && member) return message;
  throw new SandboxError('UnknownFile');
}

function pendingFile(state: ChatState, call: ModuleCall): Message {
  const message = state.messages.get(requiredId(call.body['fileId'], 'fileId'));
  if (message === undefined || message.file === null || message.file.complete)
    throw new SandboxError('UnknownFile');
  return message;
}

function wireFile({ id, chatId, senderId, file, text, utcMs }: Message): object {
  return {
    fileId: id,
    chatId,
    senderId,
    name: file?.name ?? '',
    sizeBytes: file?.sizeBytes ?? null,
    crc32: file?.crc32 ?? null,
    text,
    dateTime: toIso(utcMs),
  };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
