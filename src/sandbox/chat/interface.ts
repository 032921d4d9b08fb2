/** Requests and answers of the endpoints of the sandbox chat module. docs/modules.openapi.json is printed from it. */
import type { Interface } from '../module.ts';
import {
  BOOLEAN,
  CAPABILITY,
  CODE,
  ID,
  ID_GIVEN,
  INTEGER,
  list,
  nullable,
  object,
  oneOf,
  TEXT,
  UTC,
} from '../schemas.ts';

const MESSAGE = object({
  id: ID,
  chatId: ID,
  senderId: ID,
  text: TEXT,
  replyToId: nullable(ID),
  file: nullable(object({ fileId: ID, name: TEXT, sizeBytes: nullable(INTEGER) })),
  deleted: BOOLEAN,
  pinned: BOOLEAN,
  editedUtc: nullable(UTC),
  dateTime: UTC,
});

const CHAT_PROPERTIES = {
  id: ID,
  name: TEXT,
  kind: oneOf('lobby', 'personal', 'private', 'group'),
  ownerId: nullable(ID),
  members: INTEGER,
  unread: INTEGER,
  archived: BOOLEAN,
  lastMessage: nullable(MESSAGE),
};
const CHAT = object(CHAT_PROPERTIES);

const MEMBER = object({ id: ID, role: oneOf('owner', 'member'), anonymous: BOOLEAN, name: nullable(TEXT) });

const FILE = object(
  {
    fileId: ID,
    chatId: ID,
    senderId: ID,
    name: TEXT,
    sizeBytes: nullable(INTEGER),
    crc32: nullable(INTEGER),
    declaredCrc32: nullable({ type: 'string', maxLength: 128 }),
    contentType: {
      type: 'string',
      description: 'Media type, where the module knows it; only files/describe is read for it.',
    },
    sha256: {
      type: 'string',
      pattern: '^[0-9a-f]{64}$',
      description: 'Of all bytes, where the module knows it; only files/describe is read for it.',
    },
    text: TEXT,
    dateTime: UTC,
  },
  ['contentType', 'sha256'],
);

const INVITE = object({ chatId: ID, name: TEXT, code: CODE, dateTime: UTC });

export const CHAT_SCHEMAS = { Message: MESSAGE, Chat: CHAT, Member: MEMBER, File: FILE, Invite: INVITE };

export const CHAT_ENDPOINTS = {
  'GET chats/list': {
    summary: 'Chats of the user; archived ones instead with archived=true',
    gives: object({ chats: list(CHAT) }),
  },
  'GET members/list': { summary: 'Members of a chat', gives: object({ members: list(MEMBER) }) },
  'GET messages/list': {
    summary: 'Messages of a chat, newest first',
    gives: object({ messages: list(MESSAGE), next: nullable(ID) }),
  },
  'POST messages/send': { summary: 'A message of the user', gives: MESSAGE },
  'POST codes/deliver': {
    name: 'deliver_code',
    summary:
      'A one-time code to a phone or mailbox; called by the gateway for itself, refused with X-Crm or X-Scopes',
    takes: object({
      channel: oneOf('phone', 'email'),
      address: { type: 'string', maxLength: 254, pattern: '\\S' },
      code: { type: 'string', maxLength: 16, pattern: '\\S' },
    }),
    gives: object({ id: ID }),
  },
  'GET chats/info': { summary: 'One chat of the user', gives: CHAT },
  'POST chats/create': { summary: 'A group that the user owns', gives: CHAT },
  'POST chats/create_private': { summary: 'The private chat with another user', gives: CHAT },
  'POST chats/archive': { summary: 'Into the archive of the user, or out of it', gives: CHAT },
  'POST chats/leave': { summary: 'The end of a membership', gives: object({ chatId: ID }) },
  'POST chats/hard_delete': { summary: 'The end of a chat', gives: object({ chatId: ID }) },
  'POST members/add': {
    summary: 'A member more in a group of the user',
    gives: object({ members: list(MEMBER) }),
  },
  'GET friends/list': {
    summary: 'Those with whom the user has a private chat',
    gives: object({ friends: list(object({ userId: ID, chatId: ID })) }),
  },
  'GET invites/list': {
    summary: 'Invite codes of the groups of the user',
    gives: object({ invites: list(INVITE) }),
  },
  'POST invites/renew': {
    name: 'renew_invite',
    summary: 'A new invite code in place of the old one; no tool calls it',
    takes: object({ chatId: ID_GIVEN }),
    gives: INVITE,
  },
  'GET messages/unread': {
    summary: 'Chats with unread messages',
    gives: object({ chats: list(object({ chatId: ID, name: TEXT, unread: INTEGER })), total: INTEGER }),
  },
  'GET messages/pinned': { summary: 'Pinned messages of a chat', gives: object({ messages: list(MESSAGE) }) },
  'POST messages/mark_read': {
    summary: 'Read up to a message, or all of them',
    gives: object({ chatId: ID, unread: INTEGER }),
  },
  'POST messages/edit': { summary: 'A new text for an own message', gives: MESSAGE },
  'POST messages/soft_delete': { summary: 'An empty place instead of a message', gives: MESSAGE },
  'POST messages/hard_delete': {
    summary: 'Nothing instead of a message',
    gives: object({ id: ID, chatId: ID }),
  },
  'POST messages/pin': {
    name: 'pin_message',
    summary: 'A message to the pinned ones, or away from them; no tool calls it',
    takes: object({ messageId: ID_GIVEN, pinned: BOOLEAN }, ['pinned']),
    gives: MESSAGE,
  },
  'GET files/list': { summary: 'Files of a chat, newest first', gives: object({ files: list(FILE) }) },
  'GET files/info': { summary: 'One file in a chat of the user', gives: FILE },
  'GET files/text': { summary: 'Text of a text file', gives: object({ fileId: ID, name: TEXT, text: TEXT }) },
  'POST chats/personal': {
    name: 'personal_chat',
    summary: 'The chat of one user alone; called by the gateway for itself',
    takes: object({ userId: ID_GIVEN }),
    gives: object({ chatId: ID }),
  },
  'POST files/create': {
    name: 'create_file',
    summary: 'A pending file of a user; called by the gateway for itself',
    takes: object(
      {
        userId: ID_GIVEN,
        chatId: ID_GIVEN,
        uploadKey: { type: 'string', maxLength: 64, pattern: '\\S' },
        name: { type: 'string', maxLength: 255, pattern: '\\S' },
        text: { type: 'string', maxLength: 4096 },
        sizeBytes: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
        linkedMessageId: ID_GIVEN,
        crc32: { type: 'string', maxLength: 128 },
      },
      ['text', 'sizeBytes', 'linkedMessageId', 'crc32'],
    ),
    gives: object({ fileId: ID }),
  },
  'POST files/complete': {
    name: 'complete_file',
    summary: 'The bytes arrived; called by the gateway for itself',
    takes: object(
      {
        fileId: ID_GIVEN,
        sizeBytes: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
        crc32: { type: 'integer', minimum: 0, maximum: 0xffff_ffff },
        sha256: {
          type: 'string',
          pattern: '^[0-9a-f]{64}$',
          description: 'Of all bytes, where the uploader gave it and the gateway checked it.',
        },
        content: { type: 'string', maxLength: 32768 },
      },
      ['sha256', 'content'],
    ),
    gives: FILE,
  },
  'POST files/cancel': {
    name: 'cancel_file',
    summary: 'The upload was given up; called by the gateway for itself',
    takes: object({ uploadKey: { type: 'string', maxLength: 64, pattern: '\\S' } }),
    gives: object({ fileId: nullable(ID) }),
  },
  'GET files/describe': {
    name: 'describe_file',
    summary: 'A complete file whose bytes are asked for; called by the gateway for itself',
    takes: object({ fileId: ID, userId: ID }, ['userId']),
    gives: FILE,
  },
  'GET anon/info': {
    summary: 'The chat of an invite code',
    gives: object({ ...CHAT_PROPERTIES, memberId: nullable(ID) }),
  },
  'GET anon/members': { summary: 'Its members', gives: object({ members: list(MEMBER) }) },
  'GET anon/messages': {
    summary: 'Its messages, newest first',
    gives: object({ messages: list(MESSAGE), next: nullable(ID) }),
  },
  'GET anon/pinned': { summary: 'Its pinned messages', gives: object({ messages: list(MESSAGE) }) },
  'GET anon/files': { summary: 'Its files, newest first', gives: object({ files: list(FILE) }) },
  'POST anon/send_message': { summary: 'A message of a guest, who joins with the first', gives: MESSAGE },
  'POST anon/edit_message': { summary: 'A new text for a message of the guest', gives: MESSAGE },
  'POST anon/soft_delete_message': {
    summary: 'An empty place instead of a message of the guest',
    gives: MESSAGE,
  },
  'POST anon/leave': { summary: 'The end of the guest’s membership', gives: object({ chatId: ID }) },
  'GET capability/resolve': {
    name: 'resolve_invite_code',
    summary: 'What a code opens; called by the gateway for itself, refused with X-Crm or X-Scopes',
    takes: object({ code: TEXT }),
    gives: CAPABILITY,
  },
} as const satisfies Interface;
