/** Messages: sending, reading, changing and deleting them, for every kind of participant. */

import { boundOf, limitOf, type ModuleCall, optionalId, requiredText } from '../call-arguments.ts';
import { SandboxError } from '../errors.ts';
import { type Chat, type ChatMessage, isShown, unreadOf, usersOf, visible, wireMessage } from './model.ts';
import { memberOf, type Participant, participantAt, participantIn } from './participant.ts';
import { type ChatRows, commitChat } from './records.ts';
import type { ChatState } from './state.ts';

const TEXT_CHARACTERS_MAX = 4_096;

/** Newest first. `before` continues with older ones (`next` of the page before), `after` keeps to newer ones. */
export function listMessages(chat: Chat, call: ModuleCall): object {
  const limit = limitOf(call.query, 50, 200);
  const olderThan = boundOf(call, 'before');
  const newerThan = boundOf(call, 'after');
  const within = visible(chat).filter(({ id }) => {
    const tick = BigInt(id);
    return (olderThan === undefined || tick < olderThan) && (newerThan === undefined || tick > newerThan);
  });
  const page = within.slice(-limit).reverse();
  return { messages: page.map(wireMessage), next: within.length > limit ? (page.at(-1)?.id ?? null) : null };
}

export function textOf(call: ModuleCall): string {
  return requiredText(call, 'text', TEXT_CHARACTERS_MAX, 'BadMessage');
}

export function pinnedMessages(chat: Chat): object {
  return {
    messages: visible(chat)
      .filter(({ pinned }) => pinned)
      .reverse()
      .map(wireMessage),
  };
}

/** Chats of the caller with something new in them. */
export function unread(state: ChatState, call: ModuleCall): object {
  const userId = memberOf(state, call);
  const chats = [...state.chats.values()]
    .filter((chat) => chat.members.has(userId))
    .map((chat) => ({ chatId: chat.id, name: chat.name, unread: unreadOf(chat, userId) }))
    .filter((one) => one.unread > 0);
  return { chats, total: chats.reduce((sum, one) => sum + one.unread, 0) };
}

export function send(state: ChatState, { chat, memberId }: Participant, call: ModuleCall): object {
  const text = textOf(call);
  const replyToId = optionalId(call, 'replyToId') ?? null;
  if (replyToId !== null && state.messages.get(replyToId)?.chatId !== chat.id)
    throw new SandboxError('UnknownMessage', 'replyToId');
  const messageId = call.tick();
  const eventIds = eventIdsFor(chat, messageId, call);
  commitChat(call, 'sent', {
    tick: eventIds.at(-1) ?? messageId,
    messageId,
    chatId: chat.id,
    senderId: memberId,
    text,
    replyToId,
    utcMs: call.nowMs,
    eventIds,
  });
  return wireMessage(keptMessage(state, messageId));
}

/** One id for each event of a new message: the lobby has one, any other chat one for each of its users. */
export function eventIdsFor(chat: Chat, first: string, call: ModuleCall): string[] {
  const receivers = chat.kind === 'lobby' ? 1 : usersOf(chat).length;
  return Array.from({ length: receivers }, (_, at) => (at === 0 ? first : call.tick()));
}

/** Up to the named message, up to the newest without a name; never back. */
export function markRead(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = participantIn(state, call, call.body['chatId']);
  const wanted = optionalId(call, 'messageId') ?? visible(chat).at(-1)?.id;
  const known = chat.members.get(memberId)?.readUpToId ?? '0';
  if (wanted !== undefined && state.messages.get(wanted)?.chatId !== chat.id)
    throw new SandboxError('UnknownMessage');
  if (wanted !== undefined && BigInt(wanted) > BigInt(known)) {
    commitChat(call, 'read', { chatId: chat.id, memberId, upToId: wanted });
  }
  return { chatId: chat.id, unread: unreadOf(chat, memberId) };
}

/** The sender alone rewrites a message. */
export function edit(message: ChatMessage, memberId: string, call: ModuleCall): object {
  const text = textOf(call);
  if (message.senderId !== memberId) throw new SandboxError('NotYourMessage');
  if (message.deleted) throw new SandboxError('MessageDeleted');
  change(message.id, 'edited', call, text);
  return wireMessage(message);
}

/** The sender, or the owner of the chat. */
export function softDelete({ chat, memberId }: Participant, message: ChatMessage, call: ModuleCall): object {
  checkMayDelete(chat, memberId, message);
  if (!message.deleted) change(message.id, 'soft', call);
  return wireMessage(message);
}

export function hardDelete(state: ChatState, call: ModuleCall): object {
  const { chat, memberId, message } = participantAt(state, call, call.body['messageId']);
  checkMayDelete(chat, memberId, message);
  change(message.id, 'hard', call);
  return { id: message.id, chatId: chat.id };
}

/** Every member of a group chat may pin; in the lobby pinning is refused. */
export function pin(state: ChatState, call: ModuleCall): object {
  const { chat, message } = participantAt(state, call, call.body['messageId']);
  const pinned = call.body['pinned'] ?? true;
  if (typeof pinned !== 'boolean') throw new SandboxError('BadRequest', 'pinned is true or false');
  if (chat.kind === 'lobby') throw new SandboxError('FixedChat');
  if (message.deleted) throw new SandboxError('MessageDeleted');
  change(message.id, pinned ? 'pinned' : 'unpinned', call);
  return wireMessage(message);
}

/** A message of this chat, for a device that knows only this one. */
export function messageIn(state: ChatState, chat: Chat, id: string | undefined): ChatMessage {
  const message = state.messages.get(id ?? '');
  if (message === undefined || message.chatId !== chat.id || !isShown(message))
    throw new SandboxError('UnknownMessage');
  return message;
}

function keptMessage(state: ChatState, id: string): ChatMessage {
  const message = state.messages.get(id);
  if (message === undefined) throw new Error('a kept message is missing');
  return message;
}

function checkMayDelete(chat: Chat, memberId: string, { senderId }: ChatMessage): void {
  if (senderId !== memberId && chat.ownerId !== memberId) throw new SandboxError('NotYourMessage');
}

function change(
  messageId: string,
  kind: ChatRows['messageChanged']['change'],
  call: ModuleCall,
  text: string | null = null,
): void {
  commitChat(call, 'messageChanged', { messageId, utcMs: call.nowMs, change: kind, text });
}
