/**
 * Files in chats: a file is a message, and its id is the message's. The bytes are the gateway's; here are name, size,
 * checksum and, of a text file, what was handed over for reading. The gateway names each upload by a key of its own, so
 * that a call whose answer was lost can be made again, and a message whose id it never learned be given up.
 */

import { toIso } from '../../domain/time.ts';
import { given, limitOf, type ModuleCall, optionalId, requiredId } from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { eventIdsFor } from './messages.ts';
import { type Chat, type ChatMessage, visible } from './model.ts';
import { joined, memberOf, participantOf } from './participant.ts';
import { type ChatRows, commitChat } from './records.ts';
import type { ChatState } from './state.ts';

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
  const text = state.texts.get(message.id);
  if (text === undefined) throw new SandboxError('NoText');
  return { fileId: message.id, name: message.file?.name ?? '', text };
}

/** The chat of a user alone, for files without a conversation. */
export function personalChat(state: ChatState, call: ModuleCall): object {
  const userId = joined(state, call, requiredId(call.body['userId'], 'userId'));
  return { chatId: state.personal.get(userId) };
}

/** Creates a pending file, invisible until its bytes have arrived. The same key returns the same file. */
export function createFile(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = participantOf(state, call, call.body['userId'], call.body['chatId']);
  const uploadKey = given<string>(call, 'uploadKey') ?? '';
  const name = given<string>(call, 'name') ?? '';
  const text = given<string>(call, 'text') ?? '';
  const declaredCrc32 = given<string>(call, 'crc32');
  const sizeBytes = given<number>(call, 'sizeBytes');
  const replyToId = optionalId(call, 'linkedMessageId') ?? null;
  if (replyToId !== null && state.messages.get(replyToId)?.chatId !== chat.id)
    throw new SandboxError('UnknownMessage', 'linkedMessageId');
  const known = state.uploads.get(uploadKey);
  if (known === null) throw new SandboxError('UploadCancelled');
  if (known !== undefined) return { fileId: known };
  const fileId = call.tick();
  commitChat(call, 'fileCreated', {
    tick: fileId,
    utcMs: call.nowMs,
    fileId,
    chatId: chat.id,
    senderId: memberId,
    name,
    text,
    sizeBytes,
    uploadKey,
    replyToId,
    declaredCrc32,
  });
  return { fileId };
}

/**
 * The bytes have arrived: the message is visible if its sender is still in the chat. The same call again changes
 * nothing.
 */
export function completeFile(state: ChatState, call: ModuleCall): object {
  const message = state.messages.get(requiredId(call.body['fileId'], 'fileId'));
  const sizeBytes = given<number>(call, 'sizeBytes') ?? 0;
  const crc32 = given<number>(call, 'crc32') ?? 0;
  const content = given<string>(call, 'content');
  const sha256 = given<string>(call, 'sha256');
  const file = message?.file ?? null;
  if (message === undefined || file === null || message.deleted) throw new SandboxError('UnknownFile');
  if (file.complete) {
    if (file.sizeBytes === sizeBytes && file.crc32 === crc32) return wireFile(message);
    throw new SandboxError('UnknownFile');
  }
  const chat = state.existing(message.chatId);
  if (!chat.members.has(message.senderId)) throw new SandboxError('NotAMember');
  const tick = call.tick();
  const eventIds = eventIdsFor(chat, tick, call);
  end(
    call,
    { fileId: message.id, complete: true, sizeBytes, crc32, sha256, content, eventIds },
    eventIds.at(-1) ?? tick,
  );
  return wireFile(message);
}

/** The upload was given up: its message goes, and a call of it that comes late creates nothing. */
export function cancelFile(state: ChatState, call: ModuleCall): object {
  const uploadKey = given<string>(call, 'uploadKey') ?? '';
  const fileId = state.uploads.get(uploadKey);
  if (typeof fileId === 'string') {
    end(call, { fileId, complete: false, sizeBytes: 0, crc32: 0, content: null, eventIds: [] }, call.tick());
    return { fileId };
  }
  if (fileId === undefined) {
    commitChat(call, 'uploadCancelled', { uploadKey });
  }
  return { fileId: null };
}

/** A file for a download: by any caller without `userId`, else by a member of its chat. */
export function describeFile(state: ChatState, call: ModuleCall): object {
  const message = state.messages.get(requiredId(call.query.get('fileId'), 'fileId'));
  const reader = call.query.get('userId');
  if (message?.file?.complete !== true || message.deleted) throw new SandboxError('UnknownFile');
  const { members } = state.existing(message.chatId);
  if (reader !== undefined && !members.has(requiredId(reader, 'userId')))
    throw new SandboxError('NotAMember');
  const { sha256 } = message.file;
  return { ...wireFile(message), ...(sha256 === null ? {} : { sha256 }) };
}

function end(call: ModuleCall, facts: ChatRows['fileEnded'], tick: string): void {
  commitChat(call, 'fileEnded', { tick, ...facts });
}

/** A file in a chat of the caller. */
function readableFile(state: ChatState, call: ModuleCall): ChatMessage {
  const userId = memberOf(state, call);
  const message = state.messages.get(requiredId(call.query.get('fileId'), 'fileId'));
  const member = message !== undefined && state.chats.get(message.chatId)?.members.has(userId) === true;
  if (message?.file?.complete === true && !message.deleted && member) return message;
  throw new SandboxError('UnknownFile');
}

function wireFile({ id, chatId, senderId, file, text, utcMs }: ChatMessage): object {
  return {
    fileId: id,
    chatId,
    senderId,
    name: file?.name ?? '',
    sizeBytes: file?.sizeBytes ?? null,
    crc32: file?.crc32 ?? null,
    declaredCrc32: file?.declaredCrc32 ?? null,
    text,
    dateTime: toIso(utcMs),
  };
}
