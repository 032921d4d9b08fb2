/**
 * The sandbox chat module: chats, members, messages, files' metadata, anonymous members by invite code, and the
 * delivery of one-time codes into an outbox that can be read. Every user is a member of the lobby and of a personal
 * chat of their own, from their first call on.
 */

import { given, type ModuleCall, optionalId } from '../call-arguments.ts';
import { opened } from '../codes.ts';
import { endpointOf, type ModuleEndpoint, type SandboxModule } from '../module.ts';
import {
  cancelFile,
  completeFile,
  createFile,
  describeFile,
  fileInfo,
  listFiles,
  personalChat,
  readTextFile,
} from './files.ts';
import { CHAT_ENDPOINTS } from './interface.ts';
import {
  addMember,
  archive,
  chatInfo,
  createGroup,
  createPrivate,
  deleteChat,
  leave,
  leaveAs,
  listChats,
  listFriends,
  listInvites,
  listMembers,
  renewInvite,
} from './membership.ts';
import {
  edit,
  hardDelete,
  listMessages,
  markRead,
  messageIn,
  pin,
  pinnedMessages,
  send,
  softDelete,
  textOf,
  unread,
} from './messages.ts';
import { type CodeDelivery, wireChat } from './model.ts';
import {
  codeHolder,
  deviceParticipant,
  existingParticipant,
  memberOf,
  participantAt,
  participantIn,
} from './participant.ts';
import { commitChat } from './records.ts';
import { ChatState } from './state.ts';

type Handle = (state: ChatState, call: ModuleCall) => object;
type Row = readonly [keyof typeof CHAT_ENDPOINTS, Handle];

export interface ChatModule extends SandboxModule {
  /** Codes that were "delivered", oldest first. */
  outbox(): readonly CodeDelivery[];
}

const FOR_USERS: readonly Row[] = [
  ['GET chats/list', listChats],
  ['GET chats/info', chatInfo],
  ['POST chats/create', createGroup],
  ['POST chats/create_private', createPrivate],
  ['POST chats/archive', archive],
  ['POST chats/leave', leave],
  ['POST chats/hard_delete', deleteChat],
  ['GET members/list', (state, call) => listMembers(chatInQuery(state, call))],
  ['POST members/add', addMember],
  ['GET friends/list', listFriends],
  ['GET invites/list', listInvites],
  ['POST invites/renew', renewInvite],
  ['GET messages/list', (state, call) => listMessages(chatInQuery(state, call), call)],
  ['GET messages/unread', unread],
  ['GET messages/pinned', (state, call) => pinnedMessages(chatInQuery(state, call))],
  ['POST messages/send', (state, call) => send(state, participantIn(state, call, call.body['chatId']), call)],
  ['POST messages/mark_read', markRead],
  ['POST messages/edit', editOwn],
  ['POST messages/soft_delete', softDeleteOwn],
  ['POST messages/hard_delete', hardDelete],
  ['POST messages/pin', pin],
  ['GET files/list', (state, call) => listFiles(chatInQuery(state, call), call)],
  ['GET files/info', fileInfo],
  ['GET files/text', readTextFile],
];

/** Endpoints for holders of an invite code, distinguished by device. */
const FOR_HOLDERS: readonly Row[] = [
  ['GET anon/info', anonymousInfo],
  ['GET anon/members', (state, call) => listMembers(codeHolder(state, call).chat)],
  ['GET anon/messages', (state, call) => listMessages(codeHolder(state, call).chat, call)],
  ['GET anon/pinned', (state, call) => pinnedMessages(codeHolder(state, call).chat)],
  ['GET anon/files', (state, call) => listFiles(codeHolder(state, call).chat, call)],
  ['POST anon/send_message', sendAnonymous],
  ['POST anon/edit_message', editAnonymous],
  ['POST anon/soft_delete_message', softDeleteAnonymous],
  ['POST anon/leave', leaveAnonymous],
];

const FOR_GATEWAY: readonly Row[] = [
  ['POST chats/personal', personalChat],
  ['POST files/create', createFile],
  ['POST files/complete', completeFile],
  ['POST files/cancel', cancelFile],
  ['GET files/describe', describeFile],
  ['POST codes/deliver', deliver],
  ['GET capability/resolve', resolve],
];

export function createChat(): ChatModule {
  const state = new ChatState();
  const endpoints = (rows: readonly Row[], calledFor: ModuleEndpoint['calledFor']): ModuleEndpoint[] =>
    rows.map(([key, handle]) =>
      endpointOf('chat', CHAT_ENDPOINTS, key, calledFor, (call) => handle(state, call)),
    );
  return {
    name: 'chat',
    endpoints: [
      ...endpoints(FOR_USERS, 'user'),
      ...endpoints(FOR_HOLDERS, 'Capability:chat'),
      ...endpoints(FOR_GATEWAY, 'gateway'),
    ],
    events: state.events,
    signedUp: (call) => {
      memberOf(state, call);
    },
    apply: state.apply,
    outbox: () => state.outbox,
  };
}

function chatInQuery(state: ChatState, call: ModuleCall) {
  return participantIn(state, call, call.query.get('chatId')).chat;
}

function editOwn(state: ChatState, call: ModuleCall): object {
  const { message, memberId } = participantAt(state, call, call.body['messageId']);
  return edit(message, memberId, call);
}

function softDeleteOwn(state: ChatState, call: ModuleCall): object {
  const participant = participantAt(state, call, call.body['messageId']);
  return softDelete(participant, participant.message, call);
}

function anonymousInfo(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = codeHolder(state, call);
  return { ...wireChat(chat, memberId), memberId: memberId ?? null };
}

/** The text is judged before the device joins. */
function sendAnonymous(state: ChatState, call: ModuleCall): object {
  textOf(call);
  return send(state, deviceParticipant(state, call), call);
}

function editAnonymous(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = existingParticipant(state, call);
  return edit(messageIn(state, chat, optionalId(call, 'messageId')), memberId, call);
}

function softDeleteAnonymous(state: ChatState, call: ModuleCall): object {
  const participant = existingParticipant(state, call);
  return softDelete(participant, messageIn(state, participant.chat, optionalId(call, 'messageId')), call);
}

function leaveAnonymous(state: ChatState, call: ModuleCall): object {
  const { chat, memberId } = existingParticipant(state, call);
  return leaveAs(chat, memberId, call);
}

/** Returns the chat that an invite code opens, until the code is renewed or the chat is deleted. */
function resolve(state: ChatState, call: ModuleCall): object {
  const { id } = opened(state.byCode, call);
  return { family: 'chat', scope: 'invite', id, expiresUtc: null };
}

function deliver(_state: ChatState, call: ModuleCall): object {
  const channel = given<'phone' | 'email'>(call, 'channel') ?? 'phone';
  const address = given<string>(call, 'address') ?? '';
  const code = given<string>(call, 'code') ?? '';
  const tick = call.tick();
  const facts = { channel, address, code, utcMs: call.nowMs };
  commitChat(call, 'delivered', { tick, ...facts });
  return { id: tick };
}
