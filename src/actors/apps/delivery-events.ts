/** The events of an application's webhook: what is written down of deliveries, beside the delivery log. */
import type { FailureRun, Search } from '../../domain/webhooks/outcome.ts';
import type {
  Cursor,
  DisabledReason,
  OpenDelivery,
  ParkedEvent,
  Resend,
} from '../../domain/webhooks/types.ts';

export type DeliveryEvent =
  | { readonly type: 'deliveryOpened'; readonly delivery: OpenDelivery }
  /** Its events are no longer what may be sent; the next delivery is cut anew. */
  | { readonly type: 'deliveryDropped' }
  | {
      readonly type: 'delivered';
      readonly utcMs: number;
      /** Null for a resend: the cursor does not move. */
      readonly cursor: Cursor | null;
      readonly behind: boolean;
      readonly search: Search;
    }
  | {
      readonly type: 'deliveryFailed';
      readonly utcMs: number;
      readonly failures: FailureRun;
      readonly step: number;
      readonly rejections: number;
      readonly retryAtMs: number | null;
      /** The delivery is cut anew: halves of a refused one, one event to try a receiver that was not reached. */
      readonly search: Search | null;
    }
  | {
      readonly type: 'eventParked';
      readonly event: ParkedEvent;
      readonly cursor: Cursor;
      readonly failures: FailureRun;
      readonly limit: number;
      /** Older ones leave the list. */
      readonly dropBeforeMs: number;
    }
  /** A refused delivery of a resend is cut smaller; the event that was refused alone is passed over. */
  | { readonly type: 'resendRefused'; readonly failures: FailureRun }
  | { readonly type: 'attemptLogged' }
  | { readonly type: 'caughtUp'; readonly cursor: Cursor }
  /** The log no longer has the events up to there. */
  | { readonly type: 'gapPassed'; readonly cursor: Cursor }
  | { readonly type: 'webhookDisabled'; readonly reason: DisabledReason; readonly utcMs: number }
  | { readonly type: 'webhookEnabled'; readonly utcMs: number }
  /** Another address: earlier failures were another receiver's. */
  | { readonly type: 'webhookMoved'; readonly utcMs: number; readonly fresh: boolean }
  /** An admin disabled the application: what comes meanwhile waits behind the cursor. */
  | { readonly type: 'webhookHeld' }
  /** The owner lets parked events go. */
  | { readonly type: 'parkedDropped' }
  | { readonly type: 'resendAsked'; readonly resend: Resend }
  | { readonly type: 'resendEnded'; readonly resendId: string };

export function isDeliveryEvent(event: { readonly type: string }): event is DeliveryEvent {
  return DELIVERY_EVENTS.has(event.type);
}

const DELIVERY_EVENTS: ReadonlySet<string> = new Set<DeliveryEvent['type']>([
  'deliveryOpened',
  'deliveryDropped',
  'delivered',
  'deliveryFailed',
  'eventParked',
  'resendRefused',
  'attemptLogged',
  'caughtUp',
  'gapPassed',
  'webhookDisabled',
  'webhookEnabled',
  'webhookMoved',
  'webhookHeld',
  'parkedDropped',
  'resendAsked',
  'resendEnded',
]);
