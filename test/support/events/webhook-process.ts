/** One process of a simulated cluster that delivers webhooks to receivers of the simulation. */
import { randomUUID } from 'node:crypto';
import { user } from '../../../src/actors/accounts/user.ts';
import { app } from '../../../src/actors/apps/app.ts';
import { deliveryLog } from '../../../src/actors/apps/delivery-log.ts';
import type { ClusterNode } from '../../../src/actors/runtime/replication/cluster-node.ts';
import type { AttemptResult } from '../../../src/domain/webhooks/types.ts';
import { WebhookDispatcher } from '../../../src/io/webhooks/dispatcher.ts';
import type { OutgoingDelivery } from '../../../src/io/webhooks/sender.ts';
import { LEASE_MS, type ProcessTools } from '../actors/simulated-cluster.ts';
import { type EventDisk, EventProcess, type OpenedEvents } from './event-process.ts';
import { cipher } from './webhooks.ts';

/** Ways to break a promise of webhooks on purpose. */
export type WebhookFault = 'the lease is not asked' | 'ids by chance';

/** A connection takes so long at most, an answer as well. Milliseconds. */
const CONNECT_MAX_MS = 100;
const ANSWER_MAX_MS = 1_500;

interface WebhookProcessOptions {
  readonly disk: EventDisk;
  readonly tools: ProcessTools;
  readonly random: () => number;
  readonly fault?: WebhookFault | undefined;
  /** The receiver has an attempt, and its answer is lost. */
  readonly losesAnswer: () => boolean;
  /** A receiver gets the bytes of an attempt of a node. */
  readonly onArrival: (delivery: OutgoingDelivery, node: number) => void;
}

export class WebhookProcess {
  readonly process: EventProcess;
  dispatcher: WebhookDispatcher | undefined;
  readonly #options: WebhookProcessOptions;

  constructor(options: WebhookProcessOptions) {
    this.#options = options;
    this.process = new EventProcess({
      ...options,
      fault: undefined,
      kinds: [app, deliveryLog, user],
      ports: {
        webhooks: {
          changed: (appId) => this.dispatcher?.changed(appId),
          tell: async () => ({ ok: true, value: null }),
        },
      },
      onOpened: (opened, cluster) => this.#open(opened, cluster),
    });
  }

  #open({ system, log }: OpenedEvents, { node, view }: ClusterNode): void {
    const { tools, fault } = this.#options;
    const lease = {
      get leftMs() {
        if (fault === 'the lease is not asked') return LEASE_MS;
        return node.admits ? node.leaseLeftMs : 0;
      },
    };
    const dispatcher = new WebhookDispatcher({
      actors: system,
      administration: system.administration,
      ...{ log, lease, cipher, clock: tools.clock, schedule: tools.schedule, ownership: view },
      sender: { send: (delivery) => this.#send(delivery, node.node), close: () => undefined },
      attemptLog: undefined,
      tracing: undefined,
      onBug: (error) => this.#fail(error),
    });
    this.dispatcher = dispatcher;
    dispatcher.start().catch((error: unknown) => this.#fail(error));
    view.follow({
      applied: () => undefined,
      membersChanged: () => {
        dispatcher.ownershipChanged().catch((error: unknown) => this.#fail(error));
      },
    });
  }

  #fail(error: unknown): void {
    this.#options.tools.onFatal(error instanceof Error ? error : new Error(String(error)));
  }

  /** Sends like the sender: the lease is asked when the connection is there, and ends the attempt in any phase. */
  #send(delivery: OutgoingDelivery, node: number): Promise<AttemptResult> {
    const { tools, random, losesAnswer, fault, onArrival } = this.#options;
    const base = { elapsedMs: 1, retryAfterMs: null, answer: '', sent: true };
    const aborted = { ...base, status: null, failure: 'timed_out' } as const;
    const answered = { ...base, status: 200, failure: null } as const;
    return new Promise((resolve) => {
      delivery.leased.signal.addEventListener('abort', () => resolve(aborted));
      tools.schedule.timer(Math.floor(random() * CONNECT_MAX_MS), () => {
        if (!delivery.leased.mayBegin()) return;
        const webhookId = fault === 'ids by chance' ? randomUUID() : delivery.webhookId;
        onArrival({ ...delivery, webhookId }, node);
        const result = losesAnswer() ? ({ ...base, status: null, failure: 'broken' } as const) : answered;
        tools.schedule.timer(Math.floor(random() * ANSWER_MAX_MS), () => resolve(result));
      });
    });
  }
}
