/**
 * Participant of a chat: a user who is a member, or an anonymous device that holds the invite code. Both have the same
 * rights.
 */

import { callerOf, type ModuleCall, optionalText, requiredId } from '../call-arguments.ts';
import { opened } from '../codes.ts';
import { SandboxError } from '../errors.ts';
import { type Chat, type ChatMessage, isShown } from './model.ts';
import { commitChat } from './records.ts';
import type { ChatState } from './state.ts';

const NAME_CHARACTERS_MAX = 64;
export const MEMBERS_MAX = 200;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export interface Participant {
  readonly chat: Chat;
  readonly memberId: string;
}

/** The caller, who joins the lobby and gets a personal chat at sign-up or with the first call. */
export function memberOf(state: ChatState, call: ModuleCall): string {
  return joined(state, call, callerOf(call));
}

/** A user, for whom the gateway may call as well. */
export function joined(state: ChatState, call: ModuleCall, userId: string): string {
  if (state.personal.has(userId)) return userId;
  const tick = call.tick();
  commitChat(call, 'joined', { tick, userId, personalChatId: tick });
  return userId;
}

export function participantIn(state: ChatState, call: ModuleCall, chatId: unknown): Participant {
  return participantOf(state, call, callerOf(call), chatId);
}

export function participantOf(
  state: ChatState,
  call: ModuleCall,
  userId: unknown,
  chatId: unknown,
): Participant {
  const memberId = joined(state, call, requiredId(userId, 'userId'));
  const chat = state.chats.get(requiredId(chatId, 'chatId'));
  if (chat === undefined) throw new SandboxError('UnknownChat');
  if (!chat.members.has(memberId)) throw new SandboxError('NotAMember');
  return { chat, memberId };
}

/** The message, and the participant through which the caller sees it. */
export function participantAt(
  state: ChatState,
  call: ModuleCall,
  messageId: unknown,
): Participant & { message: ChatMessage } {
  const memberId = memberOf(state, call);
  const message = state.messages.get(requiredId(messageId, 'messageId'));
  const chat = message === undefined ? undefined : state.chats.get(message.chatId);
  // A message in a chat of others is unknown, not forbidden: ids are not to be probed.
  if (message === undefined || !isShown(message) || chat?.members.has(memberId) !== true)
    throw new SandboxError('UnknownMessage');
  return { chat, memberId, message };
}

/** The chat of a code, and the device's id in it if it has joined. */
export function codeHolder(state: ChatState, call: ModuleCall): { chat: Chat; memberId: string | undefined } {
  const chat = opened(state.byCode, call);
  return { chat, memberId: chat.devices.get(deviceOf(call)) };
}

/** The participant of a device, which joins with its first message. */
export function deviceParticipant(state: ChatState, call: ModuleCall): Participant {
  const { chat, memberId } = codeHolder(state, call);
  if (memberId !== undefined) return { chat, memberId };
  if (chat.members.size >= MEMBERS_MAX) throw new SandboxError('ChatFull');
  const tick = call.tick();
  commitChat(call, 'memberAdded', {
    tick,
    chatId: chat.id,
    memberId: tick,
    deviceGuid: deviceOf(call),
    name: optionalText(call, 'name', NAME_CHARACTERS_MAX) ?? null,
  });
  return { chat, memberId: tick };
}

export function existingParticipant(state: ChatState, call: ModuleCall): Participant {
  const { chat, memberId } = codeHolder(state, call);
  if (memberId === undefined) throw new SandboxError('NotAMember');
  return { chat, memberId };
}

function deviceOf(call: ModuleCall): string {
  if (call.deviceGuid !== null && UUID.test(call.deviceGuid)) return call.deviceGuid.toLowerCase();
  throw new SandboxError('BadDevice');
}
