/** Log records of the sandbox chat. */
import type { SandboxRecord } from '../record-log.ts';

export interface Joined extends SandboxRecord {
  readonly type: 'joined';
  readonly userId: string;
  readonly personalChatId: string;
}

export interface ChatCreated extends SandboxRecord {
  readonly type: 'chatCreated';
  readonly utcMs: number;
  readonly chatId: string;
  readonly name: string;
  readonly kind: 'private' | 'group';
  /** The first is the owner. */
  readonly members: readonly string[];
  /** Invite code of a group; null for a private chat. */
  readonly code: string | null;
}

/** A user, or an anonymous device with an id of its own in this chat. */
export interface MemberAdded extends SandboxRecord {
  readonly type: 'memberAdded';
  readonly chatId: string;
  readonly memberId: string;
  readonly deviceGuid: string | null;
  readonly name: string | null;
}

export interface MemberLeft extends SandboxRecord {
  readonly type: 'memberLeft';
  readonly chatId: string;
  readonly memberId: string;
}

export interface ChatDeleted extends SandboxRecord {
  readonly type: 'chatDeleted';
  readonly chatId: string;
}

export interface ChatArchived extends SandboxRecord {
  readonly type: 'chatArchived';
  readonly chatId: string;
  readonly memberId: string;
  readonly archived: boolean;
}

export interface InviteRenewed extends SandboxRecord {
  readonly type: 'inviteRenewed';
  readonly utcMs: number;
  readonly chatId: string;
  readonly code: string;
}

export interface Sent extends SandboxRecord {
  readonly type: 'sent';
  readonly messageId: string;
  readonly chatId: string;
  readonly senderId: string;
  readonly text: string;
  readonly utcMs: number;
  readonly replyToId?: string | null;
  /** Ids of the events, one a user of the chat; without them one event of the message's own id. */
  readonly eventIds?: readonly string[];
}

export interface MessageChanged extends SandboxRecord {
  readonly type: 'messageChanged';
  readonly messageId: string;
  readonly utcMs: number;
  /** `soft` leaves a marker, `hard` leaves nothing. */
  readonly change: 'edited' | 'soft' | 'hard' | 'pinned' | 'unpinned';
  readonly text: string | null;
}

export interface Read extends SandboxRecord {
  readonly type: 'read';
  readonly chatId: string;
  readonly memberId: string;
  readonly upToId: string;
}

export interface FileCreated extends SandboxRecord {
  readonly type: 'fileCreated';
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
}

/** An upload of which no message is known. */
export interface UploadCancelled extends SandboxRecord {
  readonly type: 'uploadCancelled';
  readonly uploadKey: string;
}

export interface FileEnded extends SandboxRecord {
  readonly type: 'fileEnded';
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
}

export interface Delivered extends SandboxRecord {
  readonly type: 'delivered';
  readonly channel: string;
  readonly address: string;
  readonly code: string;
  readonly utcMs: number;
}

export type ChatRecord =
  | Joined
  | ChatCreated
  | MemberAdded
  | MemberLeft
  | ChatDeleted
  | ChatArchived
  | InviteRenewed
  | Sent
  | MessageChanged
  | Read
  | FileCreated
  | FileEnded
  | UploadCancelled
  | Delivered;
