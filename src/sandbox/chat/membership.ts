/** Chats and who is in them: lists, new chats, invitations, members who come and go, the end of a chat. */

import { toIso } from '../../domain/time.ts';
import { type ModuleCall, requiredId, requiredText } from '../call-arguments.ts';
import { makeCode } from '../codes.ts';
import { SandboxError } from '../errors.ts';
import { type Chat, wireChat, wireMember } from './model.ts';
import { MEMBERS_MAX, memberOf, participantIn } from './participant.ts';
import { type ChatRows, commitChat } from './records.ts';
import type { ChatState } from './state.ts';

const NAME_CHARACTERS_MAX = 64;
const CHATS_MAX = 500;

/** The lobby, the personal chat, then the others, oldest first; archived ones only when they are asked for. */
export function listChats(state: ChatState, call: ModuleCall): object {
  const userId = memberOf(state, call);
  const archived = call.query.get('archived') ?? 'false';
  if (archived !== 'true' && archived !== 'false')
    throw new SandboxError('BadRequest', 'archived is true or false');
  const chats = chatsOf(state, userId).filter(
    (chat) => (chat.members.get(userId)?.archived ?? false) === (archived === 'true'),
  );
  return { chats: chats.map((chat) => wireChat(chat, userId)) };
}

export function chatInfo(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = participantIn(state, call, call.query.get('chatId'));
  return wireChat(chat, memberId);
}

export function listMembers(chat: Chat): object {
  return { members: [...chat.members.values()].map((member) => wireMember(chat, member)) };
}

/** The people with whom the caller has a private chat. */
export function listFriends(state: ChatState, call: ModuleCall): object {
  const userId = memberOf(state, call);
  const friends = chatsOf(state, userId)
    .filter(({ kind }) => kind === 'private')
    .flatMap((chat) => [...chat.members.keys()].map((id) => ({ userId: id, chatId: chat.id })))
    .filter((friend) => friend.userId !== userId);
  return { friends };
}

/** Invite codes of the groups that the caller owns. */
export function listInvites(state: ChatState, call: ModuleCall): object {
  const userId = memberOf(state, call);
  const invites = chatsOf(state, userId).flatMap(({ id, name, ownerId, invite }) =>
    ownerId === userId && invite !== null
      ? [{ chatId: id, name, code: invite.code, dateTime: toIso(invite.utcMs) }]
      : [],
  );
  return { invites };
}

/** A new code for a group; the old one opens nothing from then on. */
export function renewInvite(state: ChatState, call: ModuleCall): object {
  const chat = ownedChat(state, call);
  const code = makeCode();
  commitChat(call, 'inviteRenewed', { utcMs: call.nowMs, chatId: chat.id, code });
  return { chatId: chat.id, name: chat.name, code, dateTime: toIso(call.nowMs) };
}

export function createGroup(state: ChatState, call: ModuleCall): object {
  const userId = memberOf(state, call);
  const name = requiredText(call, 'name', NAME_CHARACTERS_MAX);
  const wanted = call.body['memberIds'] ?? [];
  if (!Array.isArray(wanted) || wanted.length >= MEMBERS_MAX)
    throw new SandboxError('BadRequest', `memberIds is a list of fewer than ${MEMBERS_MAX} user ids`);
  const others = wanted.map((id) => knownUser(state, id));
  return create(state, call, {
    name,
    kind: 'group',
    members: [...new Set([userId, ...others])],
    code: makeCode(),
  });
}

/** The private chat of two people is one, however often it is asked for. */
export function createPrivate(state: ChatState, call: ModuleCall): object {
  const userId = memberOf(state, call);
  const other = knownUser(state, call.body['userId']);
  if (other === userId) throw new SandboxError('BadRequest', 'userId is your own');
  const found = chatsOf(state, userId).find((chat) => chat.kind === 'private' && chat.members.has(other));
  if (found !== undefined) return wireChat(found, userId);
  return create(state, call, { name: 'Private', kind: 'private', members: [userId, other], code: null });
}

export function addMember(state: ChatState, call: ModuleCall): object {
  const chat = ownedChat(state, call);
  const memberId = knownUser(state, call.body['userId']);
  if (!chat.members.has(memberId)) {
    if (chat.members.size >= MEMBERS_MAX) throw new SandboxError('ChatFull');
    commitChat(call, 'memberAdded', { chatId: chat.id, memberId, deviceGuid: null, name: null });
  }
  return listMembers(chat);
}

export function archive(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = participantIn(state, call, call.body['chatId']);
  const archived = call.body['archived'] ?? true;
  if (typeof archived !== 'boolean') throw new SandboxError('BadRequest', 'archived is true or false');
  commitChat(call, 'chatArchived', { chatId: chat.id, memberId, archived });
  return wireChat(chat, memberId);
}

export function leave(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = participantIn(state, call, call.body['chatId']);
  return leaveAs(chat, memberId, call);
}

export function leaveAs(chat: Chat, memberId: string, call: ModuleCall): object {
  checkNotFixed(chat);
  commitChat(call, 'memberLeft', { chatId: chat.id, memberId });
  return { chatId: chat.id };
}

/** Deletes a chat for the owner of a group, or for either side of a private chat. */
export function deleteChat(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = participantIn(state, call, call.body['chatId']);
  checkNotFixed(chat);
  if (chat.kind === 'group' && chat.ownerId !== memberId) throw new SandboxError('NotChatOwner');
  commitChat(call, 'chatDeleted', { chatId: chat.id });
  return { chatId: chat.id };
}

function chatsOf(state: ChatState, userId: string): Chat[] {
  return [...state.chats.values()].filter((chat) => chat.members.has(userId));
}

function create(
  state: ChatState,
  call: ModuleCall,
  facts: Pick<ChatRows['chatCreated'], 'name' | 'kind' | 'members' | 'code'>,
): object {
  for (const userId of facts.members)
    if (chatsOf(state, userId).length >= CHATS_MAX) throw new SandboxError('TooManyChats');
  const chatId = call.tick();
  commitChat(call, 'chatCreated', { tick: chatId, utcMs: call.nowMs, chatId, ...facts });
  return wireChat(state.existing(chatId), facts.members[0]);
}

function ownedChat(state: ChatState, call: ModuleCall): Chat {
  const { chat, memberId } = participantIn(state, call, call.body['chatId']);
  if (chat.kind !== 'group') throw new SandboxError('FixedChat');
  if (chat.ownerId !== memberId) throw new SandboxError('NotChatOwner');
  return chat;
}

function knownUser(state: ChatState, value: unknown): string {
  const userId = requiredId(value, 'user id');
  if (!state.personal.has(userId))
    throw new SandboxError('UnknownUser', 'no user with this id has an account here');
  return userId;
}

/** The lobby and the personal chat are always there. */
function checkNotFixed({ kind }: Chat): void {
  if (kind === 'lobby' || kind === 'personal') throw new SandboxError('FixedChat');
}
