/**
 * The start of the stand-in chat module: chats, members, messages, and the delivery of one-time codes into an outbox
 * that can be read. Every user is a member of the lobby and of a personal chat of their own, from their first call on.
 */
import {
  applyChat,
  type Chat,
  type ChatRecord,
  type ChatState,
  type Delivered,
  type Delivery,
  emptyChat,
  type Joined,
  LOBBY_ID,
  type Sent,
} from './chat-state.ts';
import { SandboxError } from './errors.ts';
import {
  boundOf,
  callerOf,
  limitOf,
  type ModuleCall,
  type ModuleEndpoint,
  requiredId,
  requiredText,
  type SandboxModule,
} from './module.ts';
import type { SandboxRecord } from './record-log.ts';

const TEXT_CHARACTERS_MAX = 4_096;

export interface ChatModule extends SandboxModule {
  /** What was "delivered", oldest first. */
  outbox(): readonly Delivery[];
}

export function createChat(): ChatModule {
  const state = emptyChat();
  const endpoints: ModuleEndpoint[] = [
    {
      method: 'GET',
      path: '/chat/v1/chats/list',
      calledFor: 'user',
      handle: (call) => listChats(state, call),
    },
    {
      method: 'GET',
      path: '/chat/v1/members/list',
      calledFor: 'user',
      handle: (call) => ({ members: [...chatOf(state, call, call.query.get('chatId')).members] }),
    },
    {
      method: 'GET',
      path: '/chat/v1/messages/list',
      calledFor: 'user',
      handle: (call) => listMessages(state, call),
    },
    {
      method: 'POST',
      path: '/chat/v1/messages/send',
      calledFor: 'user',
      handle: (call) => send(state, call),
    },
    { method: 'POST', path: '/chat/v1/codes/deliver', calledFor: 'gateway', handle: deliver },
  ];
  return {
    name: 'chat',
    endpoints,
    events: state.events,
    apply: (record: SandboxRecord) => applyChat(state, record as ChatRecord),
    outbox: () => state.outbox,
  };
}

/** The caller, who joins with the first call. */
function memberOf(state: ChatState, call: ModuleCall): string {
  const userId = callerOf(call);
  if (state.personal.has(userId)) return userId;
  const tick = call.tick();
  const joined: Joined = { module: 'chat', type: 'joined', tick, userId, personalChatId: tick };
  call.commit(joined);
  return userId;
}

/** A chat that the caller is a member of. */
function chatOf(state: ChatState, call: ModuleCall, id: unknown): Chat {
  const userId = memberOf(state, call);
  const chat = state.chats.get(requiredId(id, 'chatId'));
  if (chat === undefined) throw new SandboxError('UnknownChat');
  if (!chat.members.has(userId)) throw new SandboxError('NotAMember');
  return chat;
}

function listChats(state: ChatState, call: ModuleCall): object {
  const userId = memberOf(state, call);
  const ids = [LOBBY_ID, state.personal.get(userId) ?? LOBBY_ID];
  const chats = ids.map((id) => {
    const chat = state.chats.get(id);
    if (chat === undefined) throw new Error('a joined chat is missing');
    const { name, kind, members, messages } = chat;
    return { id, name, kind, members: members.size, lastMessage: messages.at(-1) ?? null };
  });
  return { chats };
}

/** Newest first. `before` goes on with older ones (`next` of the page before), `after` keeps to newer ones. */
function listMessages(state: ChatState, call: ModuleCall): object {
  const { messages } = chatOf(state, call, call.query.get('chatId'));
  const limit = limitOf(call.query, 50, 200);
  const olderThan = boundOf(call, 'before');
  const newerThan = boundOf(call, 'after');
  const within = messages.filter(({ id }) => {
    const tick = BigInt(id);
    return (olderThan === undefined || tick < olderThan) && (newerThan === undefined || tick > newerThan);
  });
  const page = within.slice(-limit).reverse();
  return { messages: page, next: within.length > limit ? (page.at(-1)?.id ?? null) : null };
}

function send(state: ChatState, call: ModuleCall): object {
  const chat = chatOf(state, call, call.body['chatId']);
  const text = requiredText(call, 'text', TEXT_CHARACTERS_MAX, 'BadMessage');
  const messageId = call.tick();
  const sent: Sent = {
    module: 'chat',
    type: 'sent',
    tick: messageId,
    messageId,
    chatId: chat.id,
    senderId: callerOf(call),
    text,
    utcMs: call.nowMs,
  };
  call.commit(sent);
  return chat.messages.at(-1) ?? {};
}

function deliver(call: ModuleCall): object {
  const channel = requiredText(call, 'channel', 16);
  if (channel !== 'phone' && channel !== 'email')
    throw new SandboxError('BadRequest', 'channel is "phone" or "email"');
  const address = requiredText(call, 'address', 254);
  const code = requiredText(call, 'code', 16);
  const tick = call.tick();
  const delivered: Delivered = {
    module: 'chat',
    type: 'delivered',
    tick,
    channel,
    address,
    code,
    utcMs: call.nowMs,
  };
  call.commit(delivered);
  return { id: tick };
}
