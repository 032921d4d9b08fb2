/**
 * Event streams and applications of a fleet's day. A module pushes numbered events; every stream and every application must
 * have those of its user and those of all, each once and in order.
 */
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { expectOk, type Person, request } from '../../kit/agent.ts';
import { listenOnLoopback } from '../../kit/http.ts';
import { PlainEventSource } from '../../kit/plain-event-source.ts';

export const MODULE_KEY = 'fleet-module-key-0123456789';
const TYPE = 'Fleet';
/** One in so many events is for all users. */
const BROADCAST_EVERY = 4;
const BATCH_EVENTS = 5;
const BATCH_PAUSE_MS = 20;
/** A module asks again after so long. */
const PUSH_TIMEOUT_MS = 1_000;
/** Pushed in any case, however soon the uploads end. */
const EVENTS_MIN = 300;
/** Milliseconds for streams and deliveries to catch up at the end: a failed delivery waits up to 15 s. */
const SETTLE_MS = 60_000;

/** The gateway, or a node of a cluster by chance. */
export interface EventSite {
  readonly url: string;
  /** Address to which modules push. */
  readonly internal: string;
  readonly faults: string[];
  /** Repeats `work` until it has an answer. Any other error is a fault of `name`. */
  through(name: string, work: () => Promise<void>): Promise<void>;
}

interface EventPace {
  /** Milliseconds that a receiver takes to answer. */
  readonly answerMs?: () => number;
  /** Between two batches. */
  readonly pauseMs?: number;
}

interface Follower {
  readonly name: string;
  readonly userId: string;
  readonly numbers: number[];
}

interface Application extends Follower {
  /** Bytes of each delivery, by its id: a crash may repeat one, with the same bytes. */
  readonly deliveries: Map<string, string>;
  repeated: number;
}

export class Events {
  readonly #site: EventSite;
  readonly #people: readonly Person[];
  readonly #random: () => number;
  readonly #pauseMs: number;
  readonly #streams: Follower[] = [];
  readonly #sources: PlainEventSource[] = [];
  readonly #applications: Application[] = [];
  readonly #receiver: Server;
  /** User of each event, by its number; undefined: all users. */
  readonly #pushed: (string | undefined)[] = [];
  /** Streams that began again. */
  reopened = 0;
  #isClosed = false;

  constructor(
    site: EventSite,
    people: readonly Person[],
    random: () => number,
    { answerMs = () => 0, pauseMs = BATCH_PAUSE_MS }: EventPace = {},
  ) {
    this.#pauseMs = pauseMs;
    this.#site = site;
    this.#people = people;
    this.#random = random;
    this.#receiver = createServer((incoming, response) => {
      const pieces: Buffer[] = [];
      incoming.on('data', (piece: Buffer) => pieces.push(piece));
      incoming.on('end', () => {
        const at = Number(/[0-9]+$/.exec(incoming.url ?? '')?.[0]);
        this.#deliver(at, String(incoming.headers['webhook-id']), Buffer.concat(pieces).toString());
        setTimeout(() => response.end(), answerMs());
      });
    });
  }

  get pushed(): number {
    return this.#pushed.length;
  }

  get delivered(): number {
    return [...this.#applications, ...this.#streams].reduce((sum, { numbers }) => sum + numbers.length, 0);
  }

  /** Deliveries that came twice. */
  get repeated(): number {
    return this.#applications.reduce((sum, { repeated }) => sum + repeated, 0);
  }

  async openApplications(count: number): Promise<void> {
    const { port } = await listenOnLoopback(this.#receiver);
    for (let at = 0; at < count; at += 1) {
      const { userId, cookie } = this.#personOf(at);
      const name = `application ${at}`;
      this.#applications.push({ name, userId, numbers: [], deliveries: new Map(), repeated: 0 });
      const body = { name, url: `https://app-${at}.example`, webhookUrl: `http://127.0.0.1:${port}/${at}` };
      const headers = { Cookie: cookie };
      // A repeat finds the application by its url.
      await this.#site.through(name, async () => {
        expectOk(name, await request(`${this.#site.url}/auth/v1/app/upsert_usr_app`, { headers, body }));
      });
    }
  }

  /** Resolves when all have a position. A node without its lease names none. */
  async openStreams(count: number): Promise<void> {
    const opened = Array.from({ length: count }, (_, at) => this.#openStream(at));
    await Promise.all(opened);
  }

  #openStream(at: number): Promise<void> {
    const { userId, cookie } = this.#personOf(at);
    const stream: Follower = { name: `stream ${at}`, userId, numbers: [] };
    this.#streams.push(stream);
    return new Promise((resolve) => {
      this.#sources.push(
        new PlainEventSource({
          url: () => `${this.#site.url}/auth/v1/events`,
          cookie,
          onState: ({ state, opened, failure }) => {
            if (state === 'open' && opened > 1) this.reopened += 1;
            if (state !== 'failed') return;
            this.#site.faults.push(`${stream.name}: ended by HTTP ${failure}`);
            resolve();
          },
          onPosition: resolve,
          onEvent: (type, data) => {
            if (type === TYPE) stream.numbers.push(numberOf(JSON.parse(data)));
            else if (type === 'reset') this.#site.faults.push(`${stream.name}: events are missing (reset)`);
          },
        }),
      );
    });
  }

  /** Pushes events until the signal, `EVENTS_MIN` at least; a batch without an answer is repeated, as modules do. */
  async push(until: AbortSignal): Promise<void> {
    while (!this.#isClosed && (!until.aborted || this.pushed < EVENTS_MIN)) {
      const events = Array.from({ length: BATCH_EVENTS }, () => this.#newEvent());
      await this.#site.through('push', async () => {
        if (this.#isClosed) return;
        const headers = { 'X-Module-Key': MODULE_KEY };
        const url = `${this.#site.internal}/internal/v1/events`;
        const timeoutMs = PUSH_TIMEOUT_MS;
        expectOk('push', await request(url, { headers, body: { events }, timeoutMs }));
      });
      await pause(this.#pauseMs);
    }
  }

  #newEvent(): object {
    const n = this.#pushed.length;
    const isForAll = n % BROADCAST_EVERY === 0;
    const userId = isForAll ? undefined : this.#personOf(Math.floor(this.#random() * 1_000_000)).userId;
    this.#pushed.push(userId);
    const user = userId === undefined ? {} : { crmId: userId };
    return { module: 'core', tick: String(1_000 + n), type: TYPE, ...user, data: { id: String(n), n } };
  }

  #deliver(at: number, webhookId: string, body: string): void {
    const application = this.#applications[at];
    if (application === undefined) return;
    const { deliveries, name, numbers } = application;
    const hash = createHash('sha256').update(body).digest('hex');
    const known = deliveries.get(webhookId);
    if (known !== undefined) {
      application.repeated += 1;
      if (known !== hash) this.#site.faults.push(`${name}: ${webhookId} came again with other bytes`);
      return;
    }
    deliveries.set(webhookId, hash);
    // The sandbox has events of its own.
    for (const event of [JSON.parse(body)].flat()) if (event.type === TYPE) numbers.push(numberOf(event));
  }

  /** Waits until all have their last event, then compares every sequence. */
  async compareAll(): Promise<void> {
    const followers = [...this.#streams, ...this.#applications];
    const expected = new Map(this.#people.map(({ userId }) => [userId, this.#numbersOf(userId)]));
    const endMs = performance.now() + SETTLE_MS;
    const isWaiting = ({ userId, numbers }: Follower) => numbers.length < (expected.get(userId)?.length ?? 0);
    while (followers.some(isWaiting) && performance.now() < endMs) await pause(BATCH_PAUSE_MS);
    // A repeated event comes after the first one.
    await pause(BATCH_PAUSE_MS);
    for (const { name, userId, numbers } of followers) {
      const fault = sequenceFault(numbers, expected.get(userId) ?? []);
      if (fault !== undefined) this.#site.faults.push(`${name}: ${fault}`);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const source of this.#sources) source.close();
    this.#receiver.closeAllConnections();
    this.#receiver.close();
  }

  #numbersOf(userId: string): number[] {
    return this.#pushed.flatMap((owner, n) => (owner === undefined || owner === userId ? [n] : []));
  }

  #personOf(at: number): Person {
    const person = this.#people[at % this.#people.length];
    if (person === undefined) throw new Error('a fleet needs people');
    return person;
  }
}

/** Says what is wrong with the events that were received; undefined when each came once and in order. */
export function sequenceFault(numbers: readonly number[], wanted: readonly number[]): string | undefined {
  const at = wanted.findIndex((n, index) => numbers[index] !== n);
  if (at >= 0) return `event ${numbers[at]} in place of ${wanted[at]}`;
  const more = numbers.length - wanted.length;
  return more > 0 ? `${more} events more than were pushed` : undefined;
}

function numberOf(event: { readonly data: { readonly n: number } }): number {
  return event.data.n;
}

function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
