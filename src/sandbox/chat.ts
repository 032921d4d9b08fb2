/**
 * The start of the stand-in chat module: chats, members, messages, and the delivery of one-time codes into an outbox
 * that can be read. Every user is a member of the lobby and of a personal chat of their own, from their first call on.
 */
import { toIso } from '../domain/time.ts';
import { SandboxError } from './errors.ts';
import { EventList } from './events.ts';
import {
  callerOf,
  limitOf,
  type ModuleCall,
  type ModuleEndpoint,
  requiredId,
  requiredText,
  type SandboxModule,
} from './module.ts';
import type { SandboxRecord } from './record-log.ts';

/** The chat that everybody is in. Below all ticks, so it can never be another chat's id. */
export const LOBBY_ID = '1';
const TEXT_CHARACTERS_MAX = 4_096;
/** Messages kept of a chat, and deliveries kept in the outbox. */
const MESSAGES_MAX = 10_000;
const OUTBOX_MAX = 1_000;

interface Joined extends SandboxRecord {
  readonly type: 'joined';
  readonly userId: string;
  readonly personalChatId: string;
}

interface Sent extends SandboxRecord {
  readonly type: 'sent';
  readonly messageId: string;
  readonly chatId: string;
  readonly senderId: string;
  readonly text: string;
  readonly utcMs: number;
}

interface Delivered extends SandboxRecord {
  readonly type: 'delivered';
  readonly channel: string;
  readonly address: string;
  readonly code: string;
  readonly utcMs: number;
}

type ChatRecord = Joined | Sent | Delivered;

interface Message {
  readonly id: string;
  readonly chatId: string;
  readonly senderId: string;
  readonly text: string;
  readonly dateTime: string;
}

interface Chat {
  readonly id: string;
  readonly name: string;
  readonly kind: 'lobby' | 'personal';
  readonly members: Set<string>;
  /** Oldest first. */
  messages: Message[];
}

export interface Delivery {
  readonly id: string;
  readonly channel: string;
  readonly address: string;
  readonly code: string;
  readonly dateTime: string;
}

export interface ChatModule extends SandboxModule {
  /** What was "delivered", oldest first. */
  outbox(): readonly Delivery[];
}

interface ChatState {
  readonly chats: Map<string, Chat>;
  /** User to personal chat: the users who have called. */
  readonly personal: Map<string, string>;
  readonly events: EventList;
  outbox: Delivery[];
}

export function createChat(): ChatModule {
  const lobby: Chat = { id: LOBBY_ID, name: 'Lobby', kind: 'lobby', members: new Set(), messages: [] };
  const state: ChatState = {
    chats: new Map([[LOBBY_ID, lobby]]),
    personal: new Map(),
    events: new EventList('chat'),
    outbox: [],
  };
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
    apply: (record: SandboxRecord) => apply(state, record as ChatRecord),
    outbox: () => state.outbox,
  };
}

function apply(state: ChatState, record: ChatRecord): void {
  switch (record.type) {
    case 'joined': {
      const { userId, personalChatId: id } = record;
      state.chats.set(id, {
        id,
        name: 'Personal',
        kind: 'personal',
        members: new Set([userId]),
        messages: [],
      });
      state.chats.get(LOBBY_ID)?.members.add(userId);
      state.personal.set(userId, id);
      break;
    }
    case 'sent':
      applySent(state, record);
      break;
    case 'delivered': {
      const { tick: id, channel, address, code } = record;
      state.outbox.push({ id, channel, address, code, dateTime: toIso(record.utcMs) });
      if (state.outbox.length > OUTBOX_MAX) state.outbox = state.outbox.slice(-OUTBOX_MAX);
      break;
    }
  }
}

function applySent(state: ChatState, record: Sent): void {
  const { messageId: id, chatId, senderId, text } = record;
  const chat = state.chats.get(chatId);
  if (chat === undefined) throw new Error(`the log writes into the unknown chat ${chatId}`);
  const message: Message = { id, chatId, senderId, text, dateTime: toIso(record.utcMs) };
  chat.messages.push(message);
  if (chat.messages.length > MESSAGES_MAX * 1.1) chat.messages = chat.messages.slice(-MESSAGES_MAX);
  const crmId = chat.kind === 'lobby' ? null : senderId;
  state.events.add({ tick: id, type: 'NewChatMessage', crmId, data: JSON.stringify(message) });
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

/** Newest first; `after` is the `next` of the page before. */
function listMessages(state: ChatState, call: ModuleCall): object {
  const { messages } = chatOf(state, call, call.query.get('chatId'));
  const limit = limitOf(call.query, 50, 200);
  const after = call.query.get('after');
  const olderThan = after === undefined ? undefined : BigInt(requiredId(after, 'after'));
  const older = olderThan === undefined ? messages : messages.filter(({ id }) => BigInt(id) < olderThan);
  const page = older.slice(-limit).reverse();
  return { messages: page, next: older.length > limit ? (page.at(-1)?.id ?? null) : null };
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
