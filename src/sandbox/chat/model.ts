/** Parts of a chat, and the form in which chats and messages are shown. */
import { toIso } from '../../domain/time.ts';

/** The chat of all users. Below all ticks, so it can never be another chat's id. */
export const LOBBY_ID = '1';
export interface ChatMessage {
  readonly id: string;
  readonly chatId: string;
  readonly senderId: string;
  readonly utcMs: number;
  readonly replyToId: string | null;
  readonly file: MessageFile | null;
  text: string;
  editedMs: number | null;
  deleted: boolean;
  pinned: boolean;
}

export interface MessageFile {
  readonly name: string;
  sizeBytes: number | null;
  crc32: number | null;
  /** Hexadecimal; null where the gateway does not know it. */
  sha256: string | null;
  /** CRC-32 that the uploader declared, unchecked. */
  readonly declaredCrc32: string | null;
  /** The gateway's name of the upload. */
  readonly uploadKey: string | null;
  complete: boolean;
}

export interface ChatMember {
  /** A user id; for an anonymous device an id of its own. */
  readonly id: string;
  readonly anonymous: boolean;
  readonly name: string | null;
  archived: boolean;
  /** Newest message that the member has read. */
  readUpToId: string;
}

export interface Chat {
  readonly id: string;
  readonly name: string;
  readonly kind: 'lobby' | 'personal' | 'private' | 'group';
  ownerId: string | null;
  invite: { readonly code: string; readonly utcMs: number } | null;
  /** Members in the order of their arrival. */
  readonly members: Map<string, ChatMember>;
  /** Anonymous devices, the id that each has here. */
  readonly devices: Map<string, string>;
  /** Oldest first. */
  messages: ChatMessage[];
}

export interface CodeDelivery {
  readonly id: string;
  readonly channel: string;
  readonly address: string;
  readonly code: string;
  readonly dateTime: string;
}

/** Members with an account, the longest-standing first. */
export function usersOf(chat: Chat): string[] {
  return [...chat.members.values()].filter(({ anonymous }) => !anonymous).map(({ id }) => id);
}

export function emptyChat(id: string, name: string, kind: Chat['kind'], ownerId: string | null): Chat {
  return { id, name, kind, ownerId, invite: null, members: new Map(), devices: new Map(), messages: [] };
}

export function newMember(id: string): ChatMember {
  return { id, anonymous: false, name: null, archived: false, readUpToId: '0' };
}

/** A file is hidden until its bytes have arrived. */
export function isShown({ file }: ChatMessage): boolean {
  return file === null || file.complete;
}

/** Messages that members see. */
export function visible(chat: Chat): ChatMessage[] {
  return chat.messages.filter(isShown);
}

export function unreadOf(chat: Chat, memberId: string): number {
  const upTo = BigInt(chat.members.get(memberId)?.readUpToId ?? '0');
  return visible(chat).filter(
    ({ id, senderId, deleted }) => senderId !== memberId && !deleted && BigInt(id) > upTo,
  ).length;
}

export function wireMessage(message: ChatMessage): object {
  const { id, chatId, senderId, text, replyToId, file, deleted, pinned, editedMs, utcMs } = message;
  return {
    id,
    chatId,
    senderId,
    text,
    replyToId,
    file: file === null || deleted ? null : { fileId: id, name: file.name, sizeBytes: file.sizeBytes },
    deleted,
    pinned,
    editedUtc: editedMs === null ? null : toIso(editedMs),
    dateTime: toIso(utcMs),
  };
}

/** A chat as one of its members sees it; without a member, as a holder of its code sees it. */
export function wireChat(chat: Chat, memberId: string | undefined): object {
  const { id, name, kind, ownerId, members } = chat;
  const last = visible(chat).at(-1);
  return {
    id,
    name,
    kind,
    ownerId,
    members: members.size,
    unread: memberId === undefined ? 0 : unreadOf(chat, memberId),
    archived: members.get(memberId ?? '')?.archived ?? false,
    lastMessage: last === undefined ? null : wireMessage(last),
  };
}

export function wireMember(chat: Chat, { id, anonymous, name }: ChatMember): object {
  return { id, role: id === chat.ownerId ? 'owner' : 'member', anonymous, name };
}
