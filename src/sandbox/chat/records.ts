/** Log records of the sandbox chat. */
import { committing } from '../record-log.ts';

/** The fields of each record. */
export interface ChatRows {
  readonly joined: {
    readonly userId: string;
    readonly personalChatId: string;
  };
  readonly chatCreated: {
    readonly utcMs: number;
    readonly chatId: string;
    readonly name: string;
    readonly kind: 'private' | 'group';
    /** The first is the owner. */
    readonly members: readonly string[];
    /** Invite code of a group; null for a private chat. */
    readonly code: string | null;
  };
  /** A user, or an anonymous device with an id of its own in this chat. */
  readonly memberAdded: {
    readonly chatId: string;
    readonly memberId: string;
    readonly deviceGuid: string | null;
    readonly name: string | null;
  };
  readonly memberLeft: {
    readonly chatId: string;
    readonly memberId: string;
  };
  readonly chatDeleted: {
    readonly chatId: string;
  };
  readonly chatArchived: {
    readonly chatId: string;
    readonly memberId: string;
    readonly archived: boolean;
  };
  readonly inviteRenewed: {
    readonly utcMs: number;
    readonly chatId: string;
    readonly code: string;
  };
  readonly sent: {
    readonly messageId: string;
    readonly chatId: string;
    readonly senderId: string;
    readonly text: string;
    readonly utcMs: number;
    readonly replyToId?: string | null;
    /** Ids of the events, one a user of the chat; without them one event of the message's own id. */
    readonly eventIds?: readonly string[];
  };
  readonly messageChanged: {
    readonly messageId: string;
    readonly utcMs: number;
    /** `soft` leaves a marker, `hard` leaves nothing. */
    readonly change: 'edited' | 'soft' | 'hard' | 'pinned' | 'unpinned';
    readonly text: string | null;
  };
  readonly read: {
    readonly chatId: string;
    readonly memberId: string;
    readonly upToId: string;
  };
  readonly fileCreated: {
    readonly utcMs: number;
    readonly fileId: string;
    readonly chatId: string;
    readonly senderId: string;
    readonly name: string;
    readonly text: string;
    readonly sizeBytes: number | null;
    /** The gateway's name of the upload; the following ones are absent in files of earlier versions. */
    readonly uploadKey?: string;
    readonly replyToId?: string | null;
    /** CRC-32 as the uploader wrote it, unchecked. */
    readonly declaredCrc32?: string | null;
  };
  /** An upload of which no message is known. */
  readonly uploadCancelled: {
    readonly uploadKey: string;
  };
  readonly fileEnded: {
    readonly fileId: string;
    /** False: the upload was given up, and the message with it. */
    readonly complete: boolean;
    readonly sizeBytes: number;
    readonly crc32: number;
    /** Hexadecimal; absent in logs of earlier versions. */
    readonly sha256?: string | null;
    /** Beginning of a text file; null for others. */
    readonly content: string | null;
    readonly eventIds: readonly string[];
  };
  readonly delivered: {
    readonly channel: string;
    readonly address: string;
    readonly code: string;
    readonly utcMs: number;
  };
}

export const commitChat = committing<ChatRows>('chat');
