/**
 * Polls the events of one module (docs/modules.md): `GET {module}/events?after=<tick>&limit=`. The cursor is stored
 * together with the events of its page. An invalid page stops this module's polling until the module corrects it.
 */
import type { EventInbox } from '../../actors/events/inbox.ts';
import type { Administration } from '../../actors/runtime/administration.ts';
import type { Operation } from '../../actors/runtime/journal/port.ts';
import { NotOwner } from '../../actors/runtime/not-owner.ts';
import { EVENTS_HOME, OWNS_ALL, type Ownership } from '../../actors/runtime/ownership.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { type IncomingEvent, readEvents, requireModule } from '../../domain/events/intake.ts';
import { memberSpan } from '../../domain/raw-json.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { readJsonText } from '../http/exchange/json.ts';
import { type Endpoint, parseEndpoint } from '../http-client/endpoint.ts';
import { gatewayHeaders } from '../http-client/headers.ts';
import type { Log } from '../observability/log.ts';
import type { ModuleClient } from './client.ts';
import { inSlices } from './event-slices.ts';

export const POLL_MS = 500;
/** Interval while events arrive: a chat message is often followed by another. */
export const POLL_EAGER_MS = 100;
/** Consecutive empty polls until the longer interval applies again. */
export const EAGER_POLLS = 50;
/** Longest delay after consecutive failures; ± 20 %. */
export const POLL_BACKOFF_MAX_MS = 30 * SECOND_MS;
const POLL_TIMEOUT_MS = 10 * SECOND_MS;
/** Events requested at a time; halved while answers exceed the cap of the module client (4 MiB). */
export const PAGE_EVENTS = 500;
/** Events of one answer: a page may exceed the requested limit, because it never splits a tick. */
const PAGE_EVENTS_MAX = 20_000;
/** JSON values of one answer: twenty for each event. */
const PAGE_VALUES_MAX = 20 * PAGE_EVENTS_MAX;
const CURSOR = 'eventFeed:';

interface EventPollerOptions {
  readonly module: string;
  readonly url: string;
  readonly project: string;
  readonly modules: Pick<ModuleClient, 'call'>;
  readonly inbox: Pick<EventInbox, 'accept'>;
  readonly administration: Pick<Administration, 'journal' | 'metaGet'>;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly newRequestId: () => string;
  /** 0 to 1, for the jitter. */
  readonly random: () => number;
  readonly log: Log;
  /** The owner of `EVENTS_HOME` alone polls. */
  readonly ownership?: Ownership;
}

/** Polls until it is stopped. */
export class EventPoller {
  readonly #options: EventPollerOptions;
  readonly #endpoint: Endpoint;
  /** The last stored tick; undefined before the first. */
  #cursor: string | undefined;
  /** No other node has stored one since. */
  #isCurrent = true;
  #limit = PAGE_EVENTS;
  #failures = 0;
  #eagerPolls = 0;
  #cancel: () => void;
  #running: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  readonly #counts = { polls: 0, pollFailures: 0, pagesRefused: 0 };

  constructor(options: EventPollerOptions) {
    this.#options = options;
    const { module, url } = options;
    const parsed = parseEndpoint(`${module}:/events`, new Map([[module, url]]));
    if (!parsed.ok) throw new Error(`the address of the module ${module} ${parsed.fault}`);
    this.#endpoint = parsed.endpoint;
    this.#cursor = this.#storedCursor();
    this.#cancel = options.schedule.timer(0, this.#poll);
  }

  get cursor(): string {
    return this.#cursor ?? '0';
  }

  counters() {
    return { ...this.#counts, failing: this.#failures };
  }

  /** Resolves when no poll is in flight. */
  stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel();
    return this.#running;
  }

  readonly #poll = (): void => {
    this.#running = this.#pollOnce().then((waitMs) => {
      if (!this.#stopping.signal.aborted) this.#cancel = this.#options.schedule.timer(waitMs, this.#poll);
    });
  };

  /** One page; milliseconds until the next. */
  async #pollOnce(): Promise<number> {
    const { module, log } = this.#options;
    if (!this.#followOwnership()) return POLL_MS;
    this.#counts.polls += 1;
    try {
      const waitMs = await this.#read();
      if (this.#failures > 0) log.write('pollingRecovered', { module, failures: this.#failures });
      this.#failures = 0;
      return waitMs;
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      if (error instanceof NotOwner) this.#isCurrent = false;
      if (this.#stopping.signal.aborted) return 0;
      this.#counts.pollFailures += 1;
      this.#failures += 1;
      const { row, detail } = error;
      if (this.#failures === 1)
        log.write('pollingFailed', { module, cursor: this.cursor, error: row, detail });
      const waitMs = Math.min(POLL_MS * 2 ** Math.min(this.#failures, 10), POLL_BACKOFF_MAX_MS);
      return waitMs * (0.8 + 0.4 * this.#options.random());
    }
  }

  /** False where another node polls. From that one on the cursor is the one that it stored. */
  #followOwnership(): boolean {
    const { ownership = OWNS_ALL } = this.#options;
    const isOwner = ownership.owns(...EVENTS_HOME);
    if (isOwner && !this.#isCurrent) this.#cursor = this.#storedCursor();
    this.#isCurrent = isOwner;
    return isOwner;
  }

  #storedCursor(): string | undefined {
    const { administration, module } = this.#options;
    const stored = administration.metaGet(CURSOR + module);
    return typeof stored === 'string' ? stored : undefined;
  }

  async #read(): Promise<number> {
    const { inbox, administration, module } = this.#options;
    const asked = this.#limit;
    const body = await this.#fetch();
    if (body === undefined) return 0;
    // Grows slowly: a page that is too large again costs its whole transfer.
    this.#limit = Math.min(PAGE_EVENTS, this.#limit + 1 + (this.#limit >> 3));
    const events = await this.#eventsOf(body);
    if (events.length === 0) {
      this.#eagerPolls = Math.max(0, this.#eagerPolls - 1);
      return this.#eagerPolls > 0 ? POLL_EAGER_MS : POLL_MS;
    }
    const last = events.reduce((most, { tick }) => (BigInt(tick) > BigInt(most) ? tick : most), this.cursor);
    if (last === this.cursor) throw this.#refusePage('no event of the page is after the cursor');
    const row = administration.journal.pack(last);
    const before = this.#cursor === undefined ? {} : { was: this.#cursor };
    const cursor: Operation = { op: 'metaOnce', key: `part:${CURSOR}${module}`, row, ...before };
    await inbox.accept(events, [cursor]);
    this.#cursor = last;
    this.#eagerPolls = EAGER_POLLS;
    return events.length < asked ? POLL_EAGER_MS : 0;
  }

  /** The answer's body; undefined when it exceeded the cap and a shorter page must be requested. */
  async #fetch(): Promise<Buffer | undefined> {
    const { modules, project, newRequestId } = this.#options;
    const { origin, path, reference } = this.#endpoint;
    const result = await modules.call({
      method: 'GET',
      url: { origin, pathname: path, search: `?after=${this.cursor}&limit=${this.#limit}` },
      headers: gatewayHeaders({ kind: 'anonymous' }, { project, requestId: newRequestId() }),
      timeoutMs: POLL_TIMEOUT_MS,
      endpoint: reference,
      signal: this.#stopping.signal,
    });
    if (!result.ok) {
      if (result.error === 'ModuleAnswerTooLarge' && this.#limit > 1) {
        this.#limit = Math.max(1, this.#limit >> 1);
        return undefined;
      }
      throw new GatewayError(result.error === 'Aborted' ? 'Stopping' : result.error, result.reason);
    }
    if (result.answer.status !== 200)
      throw new GatewayError('ModuleFailed', `status ${result.answer.status}`);
    return result.answer.body;
  }

  async #eventsOf(body: Buffer): Promise<IncomingEvent[]> {
    const { module } = this.#options;
    try {
      const text = await readJsonText(body, PAGE_VALUES_MAX);
      const from = memberSpan(text, 'result')?.start ?? 0;
      const ofModule = (name: unknown, path: string) => requireModule(name, path, (each) => each === module);
      return await inSlices(readEvents(text, PAGE_EVENTS_MAX, ofModule, from), body.length);
    } catch (error) {
      throw error instanceof GatewayError ? this.#refusePage(error.detail ?? error.row) : error;
    }
  }

  #refusePage(detail: string): GatewayError {
    this.#counts.pagesRefused += 1;
    return new GatewayError('ModuleFailed', detail);
  }
}
