/** Chats, members, messages and the outbox of the sandbox chat module, rebuilt by applying its records. */

import { keepNewest } from '../../domain/limits/newest.ts';
import { toIso } from '../../domain/time.ts';
import { EventList } from '../events.ts';
import { applying } from '../record-log.ts';
import {
  type Chat,
  type ChatMember,
  type ChatMessage,
  type CodeDelivery,
  emptyChat,
  LOBBY_ID,
  type MessageFile,
  newMember,
  usersOf,
  wireMessage,
} from './model.ts';
import type { ChatRows } from './records.ts';

/** A thousand files of 8 KiB; of older ones name, size and checksum stay. */
const CHARACTERS_MAX = 8 * 1024 * 1024;

export class KeptTexts {
  readonly #charactersMax: number;
  /** Texts by file id, oldest first. */
  readonly #texts = new Map<string, string>();
  #characters = 0;

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax;
  }

  get characters(): number {
    return this.#characters;
  }

  get(fileId: string): string | undefined {
    return this.#texts.get(fileId);
  }

  /** Older ones are dropped. */
  keep(fileId: string, text: string): void {
    this.forget(fileId);
    this.#texts.set(fileId, text);
    this.#characters += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#characters <= this.#charactersMax) return;
      this.forget(oldest);
    }
  }

  /** The file is gone, or never had a text. */
  forget(fileId: string): void {
    this.#characters -= this.#texts.get(fileId)?.length ?? 0;
    this.#texts.delete(fileId);
  }
}

/** Messages kept of a chat, and deliveries kept in the outbox. */
const MESSAGES_MAX = 10_000;
const OUTBOX_MAX = 1_000;
const UPLOADS_MAX = 20_000;

export class ChatState {
  readonly chats = new Map([[LOBBY_ID, emptyChat(LOBBY_ID, 'Lobby', 'lobby', null)]]);
  /** User to personal chat: the users who have called. */
  readonly personal = new Map<string, string>();
  /** Every message that is kept, pending files too. */
  readonly messages = new Map<string, ChatMessage>();
  /** Groups by invite code. */
  readonly byCode = new Map<string, Chat>();
  /** Upload key to file; null where the upload was cancelled. */
  readonly uploads = new Map<string, string | null>();
  readonly texts = new KeptTexts();
  readonly events = new EventList('chat');
  outbox: CodeDelivery[] = [];

  existing(chatId: string): Chat {
    const chat = this.chats.get(chatId);
    if (chat === undefined) throw new Error(`the log names the unknown chat ${chatId}`);
    return chat;
  }

  readonly apply = applying<ChatRows>({
    joined: ({ userId, personalChatId: id }) => {
      const chat = emptyChat(id, 'Personal', 'personal', userId);
      chat.members.set(userId, newMember(userId));
      this.chats.set(id, chat);
      this.existing(LOBBY_ID).members.set(userId, newMember(userId));
      this.personal.set(userId, id);
    },
    chatCreated: ({ chatId, name, kind, members, code, utcMs }) => {
      const chat = emptyChat(chatId, name, kind, members[0] ?? null);
      for (const userId of members) chat.members.set(userId, newMember(userId));
      this.chats.set(chatId, chat);
      if (code !== null) this.#invite(chat, code, utcMs);
    },
    memberAdded: ({ chatId, memberId, deviceGuid, name }) => {
      const chat = this.existing(chatId);
      chat.members.set(memberId, { ...newMember(memberId), anonymous: deviceGuid !== null, name });
      if (deviceGuid !== null) chat.devices.set(deviceGuid, memberId);
    },
    /** The longest-standing user follows an owner who leaves; a chat without users ends. */
    memberLeft: ({ chatId, memberId }) => {
      const chat = this.existing(chatId);
      chat.members.delete(memberId);
      for (const [device, id] of chat.devices) if (id === memberId) chat.devices.delete(device);
      const [next] = usersOf(chat);
      if (next === undefined) this.#delete(chat);
      else if (chat.ownerId === memberId) chat.ownerId = next;
    },
    chatDeleted: ({ chatId }) => this.#delete(this.existing(chatId)),
    chatArchived: ({ chatId, memberId, archived }) => {
      this.#memberOf(chatId, memberId).archived = archived;
    },
    inviteRenewed: ({ chatId, code, utcMs }) => {
      const chat = this.existing(chatId);
      this.byCode.delete(chat.invite?.code ?? '');
      this.#invite(chat, code, utcMs);
    },
    sent: ({ messageId: id, chatId, senderId, text, utcMs, replyToId, eventIds }) => {
      const facts = { id, chatId, senderId, utcMs, replyToId: replyToId ?? null, file: null };
      const message: ChatMessage = { ...facts, text, editedMs: null, deleted: false, pinned: false };
      this.#keep(message);
      this.#tell(message, eventIds ?? [id]);
    },
    messageChanged: ({ messageId, change, text, utcMs }) => {
      const message = this.messages.get(messageId);
      if (message === undefined) throw new Error(`the log names the unknown message ${messageId}`);
      if (change === 'hard') this.#remove(message);
      else if (change === 'pinned' || change === 'unpinned') message.pinned = change === 'pinned';
      else {
        message.text = text ?? '';
        message.deleted = change === 'soft';
        if (change === 'edited') message.editedMs = utcMs;
        else message.pinned = false;
      }
    },
    read: ({ chatId, memberId, upToId }) => {
      this.#memberOf(chatId, memberId).readUpToId = upToId;
    },
    fileCreated: (record) => {
      const { fileId: id, chatId, senderId, name, text, sizeBytes, utcMs } = record;
      const { uploadKey = null, replyToId = null, declaredCrc32 = null } = record;
      const ended = { crc32: null, sha256: null, complete: false };
      const file: MessageFile = { name, sizeBytes, declaredCrc32, uploadKey, ...ended };
      const facts = { id, chatId, senderId, utcMs, replyToId, file };
      this.#keep({ ...facts, text, editedMs: null, deleted: false, pinned: false });
      if (uploadKey !== null) this.#noteUpload(uploadKey, id);
    },
    fileEnded: ({ fileId, complete, sizeBytes, crc32, sha256 = null, content, eventIds }) => {
      const message = this.messages.get(fileId);
      if (message === undefined || message.file === null)
        throw new Error(`the log names the unknown file ${fileId}`);
      if (!complete) {
        if (message.file.uploadKey !== null) this.#noteUpload(message.file.uploadKey, null);
        this.#remove(message);
        return;
      }
      Object.assign(message.file, { complete, sizeBytes, crc32, sha256 });
      if (content !== null) this.texts.keep(fileId, content);
      this.#tell(message, eventIds);
    },
    uploadCancelled: ({ uploadKey }) => this.#noteUpload(uploadKey, null),
    delivered: ({ tick: id, channel, address, code, utcMs }) => {
      this.outbox.push({ id, channel, address, code, dateTime: toIso(utcMs) });
      if (this.outbox.length > OUTBOX_MAX) this.outbox = this.outbox.slice(-OUTBOX_MAX);
    },
  });

  #memberOf(chatId: string, memberId: string): ChatMember {
    const member = this.existing(chatId).members.get(memberId);
    if (member === undefined) throw new Error(`the log names the unknown member ${memberId}`);
    return member;
  }

  #invite(chat: Chat, code: string, utcMs: number): void {
    chat.invite = { code, utcMs };
    this.byCode.set(code, chat);
  }

  #delete(chat: Chat): void {
    for (const { id } of chat.messages) this.#forget(id);
    this.byCode.delete(chat.invite?.code ?? '');
    this.chats.delete(chat.id);
  }

  #noteUpload(uploadKey: string, fileId: string | null): void {
    keepNewest(this.uploads, UPLOADS_MAX, uploadKey, fileId);
  }

  #keep(message: ChatMessage): void {
    const chat = this.existing(message.chatId);
    chat.messages.push(message);
    this.messages.set(message.id, message);
    if (chat.messages.length <= MESSAGES_MAX * 1.1) return;
    for (const { id } of chat.messages.slice(0, -MESSAGES_MAX)) this.#forget(id);
    chat.messages = chat.messages.slice(-MESSAGES_MAX);
  }

  #remove({ id, chatId }: ChatMessage): void {
    const chat = this.existing(chatId);
    chat.messages = chat.messages.filter((one) => one.id !== id);
    this.#forget(id);
  }

  #forget(messageId: string): void {
    this.messages.delete(messageId);
    this.texts.forget(messageId);
  }

  /** One event for all users of the lobby; one for each user of any other chat. */
  #tell(message: ChatMessage, eventIds: readonly string[]): void {
    const chat = this.existing(message.chatId);
    const receivers = chat.kind === 'lobby' ? [null] : usersOf(chat);
    const data = JSON.stringify(wireMessage(message));
    for (const [at, crmId] of receivers.entries()) {
      const tick = eventIds[at];
      if (tick !== undefined) this.events.add({ tick, type: 'NewChatMessage', crmId, data });
    }
  }
}
