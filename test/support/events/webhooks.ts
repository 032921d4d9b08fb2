/**
 * Webhooks over a test's actors: an event log in memory, receivers that a test scripts, and the dispatcher between them.
 * Time stands still until the test moves it; nothing touches a socket.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { Test } from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import { type AppProtocol, app } from '../../../src/actors/apps/app.ts';
import type { WebhookView } from '../../../src/actors/apps/app-state.ts';
import { deliveryLog, type LogLine, logPageId, PAGES } from '../../../src/actors/apps/delivery-log.ts';
import type { Ownership } from '../../../src/actors/runtime/ownership.ts';
import type { WebhookPort } from '../../../src/actors/runtime/ports.ts';
import type { Asked, TypeIn } from '../../../src/actors/runtime/protocol.ts';
import type { AppPatch, AppView } from '../../../src/domain/apps.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { EventLog, OwnEvent, StoredEvent } from '../../../src/domain/events/events.ts';
import type { AttemptResult, WebhookNotice } from '../../../src/domain/webhooks/types.ts';
import { createApiKeyCipher } from '../../../src/io/apps/api-keys.ts';
import type { AttemptLog, LoggedAttempt } from '../../../src/io/webhooks/attempt-log.ts';
import { CONCURRENCY_LIMITS, type ConcurrencyLimits } from '../../../src/io/webhooks/concurrency.ts';
import { WebhookDispatcher } from '../../../src/io/webhooks/dispatcher.ts';
import type { DeliveryLease } from '../../../src/io/webhooks/lease.ts';
import type { OutgoingDelivery, WebhookSender } from '../../../src/io/webhooks/sender.ts';
import { createTestActors, type TestActors } from '../actors/actors.ts';

export const OWNER = '101';
const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
export const cipher = createApiKeyCipher(createHash('sha256').update('cipher').digest());

/** The log as its readers see it, in memory: what is appended is on disk at once. */
export class MemoryEventLog implements EventLog {
  readonly epoch = 'e1';
  readonly published: OwnEvent[] = [];
  readonly #events: StoredEvent[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #clock: () => number;
  pages = 0;
  /** The lowest position that a page began after, since it was last set. */
  readFrom = Number.POSITIVE_INFINITY;
  #last = 0;

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  get oldest(): number {
    return this.#events[0]?.sequence ?? 0;
  }
  get newest(): number {
    return this.#events.at(-1)?.sequence ?? 0;
  }

  page(afterSequence: number, limit: number): readonly StoredEvent[] {
    this.pages += 1;
    this.readFrom = Math.min(this.readFrom, afterSequence);
    const first = this.#events[0]?.sequence ?? 0;
    const start = Math.max(0, afterSequence + 1 - first);
    return this.#events.slice(start, start + limit);
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async publish(event: OwnEvent): Promise<void> {
    this.published.push(event);
  }

  append(fields: Partial<StoredEvent> = {}, data: object = {}): StoredEvent {
    this.#last += 1;
    const module = fields.module ?? 'wallet';
    const tick = fields.tick ?? String(1_000 + this.#last);
    const type = fields.type ?? 'TxInWallet';
    const event: StoredEvent = {
      sequence: this.#last,
      module,
      tick,
      type,
      userId: OWNER,
      appId: undefined,
      currency: undefined,
      netType: undefined,
      jsonText: JSON.stringify({ module, tick, type, data: { n: this.#last, ...data } }),
      acceptedMs: this.#clock(),
      ...fields,
    };
    this.#events.push(event);
    for (const listener of this.#listeners) listener();
    return event;
  }

  /** Retention: the oldest go. */
  trim(count: number): void {
    this.#events.splice(0, count);
  }

  /** The dispatcher of a run that was killed reads no more. */
  forget(): void {
    this.#listeners.clear();
  }
}

/** Lease of an attempt that may last. */
export const unbounded = (): OutgoingDelivery['leased'] => ({
  signal: new AbortController().signal,
  mayBegin: () => true,
});

const ABORTED = { failure: 'timed_out', sent: true } as const;

export type Answer = number | Partial<AttemptResult> | 'never';

/** Receivers: what they got, and what they say. */
export class TestReceivers implements WebhookSender {
  readonly got: OutgoingDelivery[] = [];
  /** Deliveries that were taken with 2xx. */
  readonly taken: OutgoingDelivery[] = [];
  answer: (delivery: OutgoingDelivery) => Answer | Promise<Answer> = () => 200;
  inFlight = 0;
  inFlightPeak = 0;
  readonly inFlightByUrl = new Map<string, number>();

  async send(delivery: OutgoingDelivery): Promise<AttemptResult> {
    this.got.push(delivery);
    this.inFlight += 1;
    this.inFlightPeak = Math.max(this.inFlightPeak, this.inFlight);
    const ofUrl = (this.inFlightByUrl.get(delivery.url) ?? 0) + 1;
    if (ofUrl > 1) throw new Error('two deliveries of one application at a time');
    this.inFlightByUrl.set(delivery.url, ofUrl);
    try {
      const over = new Promise<Answer>((resolve) => {
        delivery.leased.signal.addEventListener('abort', () => resolve(ABORTED));
      });
      const said = await Promise.race([this.answer(delivery), over]);
      const answer = said === 'never' ? await over : said;
      if (answer === 'never') throw new Error('an attempt ends');
      const base = { failure: null, sent: true, retryAfterMs: null, elapsedMs: 3, answer: 'said' };
      const result =
        typeof answer === 'number' ? { ...base, status: answer } : { ...base, status: null, ...answer };
      if (result.status !== null && result.status >= 200 && result.status < 300) this.taken.push(delivery);
      return result;
    } finally {
      this.inFlight -= 1;
      this.inFlightByUrl.set(delivery.url, ofUrl - 1);
    }
  }

  async close(): Promise<void> {}

  /** Events that were taken, `n` of their data, in order. */
  numbers(url?: string): number[] {
    return this.taken
      .filter((each) => url === undefined || each.url === url)
      .flatMap(({ body }) => numbersOf(body));
  }
}

/** `n` of the events of a body. */
export function numbersOf(body: string): number[] {
  const parsed = JSON.parse(body) as { data: { n: number } } | { data: { n: number } }[];
  return [parsed].flat().map(({ data }) => data.n);
}

export type Rig = Awaited<ReturnType<typeof createRig>>;

/** Faults that a test must notice: see where the dispatcher is created. */
export type RigFault = 'settlesUnsent' | 'newIds' | 'earlyCheckpoint';

export interface RigOptions {
  readonly concurrency?: ConcurrencyLimits;
  readonly seed?: number;
  readonly fault?: RigFault;
  readonly ownership?: Ownership;
  readonly lease?: DeliveryLease;
}

interface Run extends Pick<RigOptions, 'fault' | 'ownership' | 'lease'> {
  readonly actors: TestActors;
  readonly log: MemoryEventLog;
  readonly receivers: TestReceivers;
  readonly faults: unknown[];
  readonly attemptLog: AttemptLog;
  readonly concurrency: ConcurrencyLimits;
  readonly isAlive: () => boolean;
  readonly quarantined: ReadonlySet<string>;
}

/** The actors, with a set of quarantined applications. */
function guarded(system: TestActors['system'], quarantined: ReadonlySet<string>): TestActors['system'] {
  return new Proxy(system, {
    get(_target, name) {
      const member: unknown = Reflect.get(system, name);
      if (typeof member !== 'function') return member;
      if (name !== 'query' && name !== 'ask') return member.bind(system);
      return (...parts: unknown[]) => {
        if (parts[0] === app && quarantined.has(String(parts[1]))) throw new GatewayError('Quarantined');
        return Reflect.apply(member, system, parts);
      };
    },
  });
}

/** Result of a receiver that took it. */
const UNSENT: AttemptResult = {
  status: 200,
  failure: null,
  sent: true,
  retryAfterMs: null,
  elapsedMs: 1,
  answer: '',
};

/** The dispatcher of one run of the process; after a kill it gets no answer and does no work. */
function engineOf(run: Run): WebhookDispatcher {
  const { actors, log, receivers, faults, attemptLog, concurrency, isAlive, quarantined, fault } = run;
  const { ownership, lease } = run;
  const { administration } = actors.system;
  const ahead = {
    ids: administration.ids.bind(administration),
    metaGet: () => log.newest,
    metaPut: administration.metaPut.bind(administration),
  };
  let attempts = 0;
  return new WebhookDispatcher({
    actors: guarded(actors.system, quarantined),
    administration: fault === 'earlyCheckpoint' ? ahead : administration,
    log,
    cipher,
    clock: actors.clock.read,
    schedule: {
      immediate: (task) => setImmediate(() => (isAlive() ? task() : undefined)),
      timer: actors.clock.timer,
    },
    sender: {
      send: async (delivery) => {
        attempts += 1;
        if (fault === 'settlesUnsent' && attempts % 5 === 0) return UNSENT;
        const webhookId = fault === 'newIds' ? `${delivery.webhookId}${randomUUID()}` : delivery.webhookId;
        const result = await receivers.send({ ...delivery, webhookId });
        return isAlive() ? result : new Promise<AttemptResult>(() => {});
      },
      close: async () => {},
    },
    concurrency,
    attemptLog,
    tracing: undefined,
    ...(ownership && { ownership }),
    ...(lease && { lease }),
    onBug: (error) => faults.push(error),
  });
}

async function linesOf({ system }: TestActors, appId: string): Promise<LogLine[]> {
  const query = { type: 'lines' as const };
  const pages = Array.from({ length: PAGES }, (_, page) =>
    system.query(deliveryLog, logPageId(appId, page), query),
  );
  return (await Promise.all(pages)).flat().toSorted((one, other) => one.number - other.number);
}

export function configureCommand(
  appId: string,
  { ownerId = OWNER, ...patch }: AppPatch & { readonly ownerId?: string },
) {
  const given = {
    name: `App ${appId}`,
    url: `https://app${appId}.example`,
    webhookUrl: `https://hook${appId}.example/`,
    ...patch,
  };
  const key = cipher.issue().sealed;
  return { type: 'configure', commandId: 'c', ownerId, patch: given, key, origin: ORIGIN } as const;
}

/** A port that keeps what the owners are notified of. */
function keeping(notices: WebhookNotice[], changed: WebhookPort['changed']): WebhookPort {
  return {
    changed,
    async tell(notice) {
      notices.push(notice);
      return { ok: true, value: null };
    },
  };
}

export async function createRig(options: RigOptions = {}) {
  const notices: WebhookNotice[] = [];
  /** Bugs that the dispatcher has reported. */
  const faults: unknown[] = [];
  /** Attempts in the log. */
  const attempts: LoggedAttempt[] = [];
  let dispatcher: WebhookDispatcher | undefined;
  const webhooks = keeping(notices, (appId) => dispatcher?.changed(appId));
  const workers = { run: async () => ({ ok: false, error: 'InternalError' }) as const };
  const seed = options.seed === undefined ? {} : { seed: options.seed };
  const actors = createTestActors({ kinds: [app, deliveryLog, user], ports: { workers, webhooks }, ...seed });
  const log = new MemoryEventLog(actors.clock.read);
  const receivers = new TestReceivers();
  /** Applications that are quarantined. */
  const quarantined = new Set<string>();
  let run = 0;
  const settle = async () => {
    for (let turn = 0; turn < 3; turn += 1) await actors.settle();
  };
  const start = async () => {
    const started = run;
    const { concurrency = CONCURRENCY_LIMITS } = options;
    const isAlive = () => started === run;
    dispatcher = engineOf({
      ...options,
      actors,
      log,
      receivers,
      faults,
      attemptLog: (attempt) => attempts.push(attempt),
      concurrency,
      isAlive,
      quarantined,
    });
    await dispatcher.start();
    await settle();
  };
  await start();
  return {
    actors,
    clock: actors.clock,
    log,
    receivers,
    notices,
    faults,
    attempts,
    quarantined,
    get dispatcher(): WebhookDispatcher {
      if (dispatcher === undefined) throw new Error('the dispatcher runs');
      return dispatcher;
    },
    /** Registers an application with a webhook. */
    async register(appId: string, patch: AppPatch & { readonly ownerId?: string } = {}) {
      await actors.system.tell(app, appId, configureCommand(appId, patch));
      await settle();
    },
    webhook: async (appId: string): Promise<WebhookView | undefined> =>
      actors.system.query(app, appId, { type: 'webhook' }),
    async view(appId: string): Promise<AppView> {
      const view = await actors.system.query(app, appId, { type: 'view' });
      if (view === undefined) throw new Error(`no application ${appId}`);
      return view;
    },
    lines: (appId: string) => linesOf(actors, appId),
    async ask<T extends TypeIn<AppProtocol['replies']>>(appId: string, command: Asked<AppProtocol, T>) {
      const reply = await actors.system.ask<AppProtocol, T>(app, appId, command);
      await settle();
      return reply;
    },
    /** Kills the process and starts another over the same journal. */
    async restart() {
      run += 1;
      log.forget();
      for (const url of receivers.inFlightByUrl.keys()) receivers.inFlightByUrl.set(url, 0);
      await actors.restart();
      await start();
    },
    settle,
  };
}

export interface StartedRig extends Rig {
  /** Appends so many events, alike, and waits for their deliveries. */
  append(count?: number, fields?: Partial<StoredEvent>): Promise<void>;
}

/** A rig with these applications; the test fails where its dispatcher reports a bug. */
export async function startRig(
  t: Test,
  appIds: readonly string[] = ['77'],
  options: RigOptions = {},
): Promise<StartedRig> {
  const rig = await createRig(options);
  t.teardown(() => {
    if (rig.faults.length > 0) throw new AggregateError(rig.faults, 'bugs of the dispatcher');
  });
  for (const appId of appIds) await rig.register(appId);
  return Object.assign(rig, {
    async append(count = 1, fields: Partial<StoredEvent> = {}) {
      for (let n = 0; n < count; n += 1) rig.log.append(fields);
      await rig.settle();
    },
  });
}
