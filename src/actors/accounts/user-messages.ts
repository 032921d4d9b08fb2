/** Durable messages to an account: from applications, from other accounts and from the one-time codes. */
import type { ErrorName } from '../../domain/errors.ts';
import type { EntryTicks } from '../apps/app-access-index.ts';
import type { RemovedApp, SettledApp } from '../apps/app-messages.ts';
import type { Origin } from '../change.ts';
import { receiver } from '../runtime/protocol.ts';

export const USER = receiver<UserMessage>('user');

/** From an application: it has done what the waiting command asked for. */
export interface AppSettled {
  readonly type: 'appSettled';
  readonly commandId: string;
  readonly reply: SettledApp | RemovedApp;
}

/** Sent by an application: sessions that app access or an explicit key opened are over. */
export interface AppClosed {
  readonly type: 'appClosed';
  readonly appId: string;
  /** Tick of the closing: sessions that keep no ticks of their entry, and are older, are over too. */
  readonly tick: string;
  /** Absent in messages that versions before 0.2 wrote: the tick decides. */
  readonly over?: Partial<EntryTicks>;
}

/** From an application: it was removed. */
export interface AppGone {
  readonly type: 'appGone';
  readonly appId: string;
}

/** Sent by an account that proved possession of a key that this one only claimed. */
export interface LoseKey {
  readonly type: 'loseKey';
  readonly keyId: string;
}

/** Ends one session if it is there; the reply is the number of sessions that ended. */
export interface EndSession {
  readonly type: 'endSession';
  readonly sessionId: string;
  readonly origin: Origin;
}

/** A code sent to this user's contact was not accepted. */
export interface CodeRefused {
  readonly type: 'codeRefused';
  readonly error: ErrorName;
  readonly origin: Origin;
}

/** Messages of an application. */
export type AppNotice = AppSettled | AppClosed | AppGone;

export type UserMessage = AppNotice | LoseKey | EndSession | CodeRefused;
