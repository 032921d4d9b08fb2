/** Durable messages to an application, from accounts and from itself, and what its account answers callers with. */
import type { AppPatch, AppView, SealedKey } from '../../domain/apps.ts';
import type { WebhookNotice } from '../../domain/webhooks/types.ts';
import type { Origin } from '../change.ts';
import { receiver } from '../runtime/protocol.ts';

export const APP = receiver<AppMessage>('app');

/** Sent by the owner's account: creates the application or changes it. The reply goes back as `appSettled`. */
export interface ConfigureApp {
  readonly type: 'configure';
  readonly commandId: string;
  readonly ownerId: string;
  readonly patch: AppPatch;
  /** Used by a new application only. */
  readonly key: SealedKey;
  /** Sent again because the answer was lost: an existing application does not change. */
  readonly repeat?: true;
  readonly origin: Origin;
}

/** From the owner's account; `reply` is what its waiting caller gets. */
export interface RemoveApp {
  readonly type: 'remove';
  readonly commandId: string;
  readonly ownerId: string;
  readonly reply: RemovedApp;
  readonly origin: Origin;
}

/** Sent by the account of another user that the application acts for from now on. */
export interface JoinApp {
  readonly type: 'join';
  readonly userId: string;
}

/** Message to itself: the owner is to be notified. */
export interface TellOwner {
  readonly type: 'tell';
  readonly notice: WebhookNotice;
}

export type AppMessage = ConfigureApp | RemoveApp | JoinApp | TellOwner;

/** The reply to the account's `upsertApp`. */
export interface SettledApp {
  readonly app: AppView;
  /** The newest API key: shows whether the key of the request was used. */
  readonly keyId: string;
}

/** The reply to the account's `removeApp`. */
export interface RemovedApp {
  readonly appId: string;
  readonly sessionsClosed: number;
}
