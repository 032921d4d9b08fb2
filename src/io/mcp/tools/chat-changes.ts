/**
 * Built-in tools that change the chat module in the name of the person (spec 2.4). They need a proven key. Deletions and
 * departures are marked destructive.
 */
import type { ToolRow } from '../tool.ts';
import { ADDS, ENDS, SETS } from './annotations.ts';
import { id, inputOf, line } from './arguments.ts';
import { chatId, messageText } from './chat.ts';

const changing = { method: 'POST', restricted: ['McpBasic'] } as const;
const messageId = id('Id of the message, from chat_messages.', '1882417349637701632');

export const CHAT_CHANGE_TOOLS: Readonly<Record<string, ToolRow>> = {
  chat_send_message: {
    ...changing,
    annotations: ADDS,
    endpoint: 'chat:/chat/v1/messages/send',
    title: 'Send a message',
    description:
      'Sends a message to a chat in the name of the logged-in user; all members see it at once. Confirm text and chat with the person unless they gave you both.',
    inputSchema: inputOf(
      {
        chatId,
        text: messageText,
        replyToId: id('Message of the same chat that this one answers.', '1842003'),
      },
      ['chatId', 'text'],
    ),
  },
  chat_mark_read: {
    ...changing,
    annotations: SETS,
    endpoint: 'chat:/chat/v1/messages/mark_read',
    title: 'Mark as read',
    description:
      'Marks the messages of a chat as read by the logged-in user, up to the given one, or all of them without one. Never marks anything as unread again.',
    inputSchema: inputOf(
      { chatId, messageId: { ...messageId, description: 'Newest message that was read.' } },
      ['chatId'],
    ),
  },
  chat_create: {
    ...changing,
    annotations: ADDS,
    endpoint: 'chat:/chat/v1/chats/create',
    title: 'Create a group',
    description:
      'Creates a group chat that the logged-in user owns, with the named people as members. Its invite code is in chat_invites.',
    inputSchema: inputOf(
      {
        name: line('Name that the members see.', 64, 'Climbing'),
        memberIds: {
          type: 'array',
          description: 'User ids of the other members, who must have used the chat before.',
          items: { type: 'string', format: 'int64', pattern: '^(?:0|[1-9][0-9]{0,18})$' },
          maxItems: 199,
          examples: [['1842001']],
        },
      },
      ['name'],
    ),
  },
  chat_create_private: {
    ...changing,
    annotations: SETS,
    endpoint: 'chat:/chat/v1/chats/create_private',
    title: 'Open a private chat',
    description:
      'Returns the private chat of the logged-in user with one other person, and opens it if there is none yet.',
    inputSchema: inputOf({ userId: id('User id of the other person.', '1842001') }, ['userId']),
  },
  chat_edit_message: {
    ...changing,
    annotations: SETS,
    endpoint: 'chat:/chat/v1/messages/edit',
    title: 'Edit a message',
    description:
      'Replaces the text of a message that the logged-in user sent. Everybody sees the new text and that it was edited; the old one is gone.',
    inputSchema: inputOf({ messageId, text: messageText }, ['messageId', 'text']),
  },
  chat_soft_delete_message: {
    ...changing,
    annotations: ENDS,
    endpoint: 'chat:/chat/v1/messages/soft_delete',
    title: 'Delete the text of a message',
    description:
      'Removes the text of a message for everybody and leaves an empty place that says so. The sender may, and the owner of the chat. The text does not come back: ask before calling.',
    inputSchema: inputOf({ messageId }, ['messageId']),
  },
  chat_hard_delete_message: {
    ...changing,
    annotations: ENDS,
    endpoint: 'chat:/chat/v1/messages/hard_delete',
    title: 'Delete a message without a trace',
    description:
      'Removes a message for everybody, place and all. The sender may, and the owner of the chat. It does not come back: ask before calling.',
    inputSchema: inputOf({ messageId }, ['messageId']),
  },
  chat_archive_chat: {
    ...changing,
    annotations: SETS,
    endpoint: 'chat:/chat/v1/chats/archive',
    title: 'Archive a chat',
    description:
      'Moves a chat of the logged-in user to the archive, or back with `archived` false. Other members notice nothing, and messages keep coming.',
    inputSchema: inputOf(
      {
        chatId,
        archived: {
          type: 'boolean',
          description: 'False takes the chat out of the archive.',
          default: true,
          examples: [true],
        },
      },
      ['chatId'],
    ),
  },
  chat_leave_chat: {
    ...changing,
    annotations: ENDS,
    endpoint: 'chat:/chat/v1/chats/leave',
    title: 'Leave a chat',
    description:
      'Ends the membership of the logged-in user in a private chat or a group: only its owner can bring them back. A group passes to its longest-standing member, and ends with its last one. Ask before calling.',
    inputSchema: inputOf({ chatId }, ['chatId']),
  },
  chat_hard_delete_chat: {
    ...changing,
    annotations: ENDS,
    endpoint: 'chat:/chat/v1/chats/hard_delete',
    title: 'Delete a chat',
    description:
      'Deletes a group that the logged-in user owns, or a private chat, with all messages, for everybody and for good. Ask before calling.',
    inputSchema: inputOf({ chatId }, ['chatId']),
  },
  chat_add_member: {
    ...changing,
    annotations: SETS,
    endpoint: 'chat:/chat/v1/members/add',
    title: 'Add a member',
    description:
      'Adds a person to a group that the logged-in user owns; they see all earlier messages. Returns the members. Adding a member twice changes nothing.',
    inputSchema: inputOf({ chatId, userId: id('User id of the person.', '1842001') }, ['chatId', 'userId']),
  },
};
