/** Chats, members, messages and the outbox of the stand-in chat module, rebuilt by applying its records. */
import { toIso } from '../domain/time.ts';
import { EventList } from './events.ts';
import type { SandboxRecord } from './record-log.ts';

/** The chat that everybody is in. Below all ticks, so it can never be another chat's id. */
export const LOBBY_ID = '1';
/** Messages kept of a chat, and deliveries kept in the outbox. */
const MESSAGES_MAX = 10_000;
const OUTBOX_MAX = 1_000;

export interface Joined extends SandboxRecord {
  readonly type: 'joined';
  readonly userId: string;
  readonly personalChatId: string;
}

export interface Sent extends SandboxRecord {
  readonly type: 'sent';
  readonly messageId: string;
  readonly chatId: string;
  readonly senderId: string;
  readonly text: string;
  readonly utcMs: number;
}

export interface Delivered extends SandboxRecord {
  readonly type: 'delivered';
  readonly channel: string;
  readonly address: string;
  readonly code: string;
  readonly utcMs: number;
}

export type ChatRecord = Joined | Sent | Delivered;

export interface Message {
  readonly id: string;
  readonly chatId: string;
  readonly senderId: string;
  readonly text: string;
  readonly dateTime: string;
}

export interface Chat {
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

export interface ChatState {
  readonly chats: Map<string, Chat>;
  /** User to personal chat: the users who have called. */
  readonly personal: Map<string, string>;
  readonly events: EventList;
  outbox: Delivery[];
}

export function emptyChat(): ChatState {
  const lobby: Chat = { id: LOBBY_ID, name: 'Lobby', kind: 'lobby', members: new Set(), messages: [] };
  return {
    chats: new Map([[LOBBY_ID, lobby]]),
    personal: new Map(),
    events: new EventList('chat'),
    outbox: [],
  };
}

export function applyChat(state: ChatState, record: ChatRecord): void {
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
