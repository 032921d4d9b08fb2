/**
 * Event streams without sockets, clock or disk: a log in memory, sockets that accept as much as the test says, a clock
 * and ticks that the test moves, and a reader of server-sent events as the HTML Standard has it (9.2.6).
 */
import type { Schedule } from '../../../src/actors/runtime/runtime-context.ts';
import type { EventLog, OwnEvent, StoredEvent } from '../../../src/domain/events/events.ts';
import type { OutgoingBody, OutgoingSource } from '../../../src/io/http/exchange/stream.ts';

export interface Dispatched {
  readonly type: string;
  readonly data: string;
  readonly id: string;
}

/** Reads a stream as an EventSource does. An event whose blank line never came is not dispatched. */
export class EventReader {
  readonly events: Dispatched[] = [];
  readonly comments: string[] = [];
  lastEventId = '';
  retryMs = 0;
  #rest = '';
  #type = '';
  #data: string[] = [];
  #id: string;

  constructor(lastEventId = '') {
    this.lastEventId = lastEventId;
    this.#id = lastEventId;
  }

  push(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#line(line);
  }

  #line(line: string): void {
    if (line === '') {
      this.lastEventId = this.#id;
      if (this.#data.length > 0) {
        this.events.push({ type: this.#type || 'message', data: this.#data.join('\n'), id: this.#id });
      }
      this.#type = '';
      this.#data = [];
      return;
    }
    const at = line.indexOf(':');
    if (at === 0) {
      this.comments.push(line.slice(1).trim());
      return;
    }
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? '' : line.slice(at + 1).replace(/^ /, '');
    if (name === 'event') this.#type = value;
    else if (name === 'data') this.#data.push(value);
    else if (name === 'id') this.#id = value;
    else if (name === 'retry' && /^[0-9]+$/.test(value)) this.retryMs = Number(value);
  }
}

/** A log in memory. */
export class MemoryLog implements EventLog {
  readonly epoch: string;
  readonly rows: StoredEvent[] = [];
  readonly own: OwnEvent[] = [];
  oldest = 0;
  newest = 0;
  /** Pages that were read. */
  pages = 0;
  readonly #listeners = new Set<() => void>();

  constructor(epoch = 'e1') {
    this.epoch = epoch;
  }

  /** `data` is the JSON text that the module sent. */
  append(userId: string | undefined, data = '{}', type = 'TxInWallet'): StoredEvent {
    const event = this.add(userId, data, type);
    this.tell();
    return event;
  }

  /** Adds without telling anybody. */
  add(userId: string | undefined, data = '{}', type = 'TxInWallet'): StoredEvent {
    this.newest += 1;
    if (this.oldest === 0) this.oldest = this.newest;
    const jsonText = `{"module":"wallet","tick":"${this.newest}","type":${JSON.stringify(type)},"data":${data}}`;
    const event: StoredEvent = {
      sequence: this.newest,
      module: 'wallet',
      tick: String(this.newest),
      type,
      userId,
      appId: undefined,
      currency: undefined,
      netType: undefined,
      jsonText,
      acceptedMs: 0,
    };
    this.rows.push(event);
    return event;
  }

  tell(): void {
    for (const listener of this.#listeners) listener();
  }

  /** The oldest events leave, but never the newest. */
  trim(count: number): void {
    this.rows.splice(0, Math.min(count, this.rows.length - 1));
    this.oldest = this.rows[0]?.sequence ?? 0;
  }

  page(afterSequence: number, limit: number): StoredEvent[] {
    this.pages += 1;
    const first = Math.max(0, afterSequence + 1 - this.oldest);
    return this.rows.slice(first, first + limit);
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async publish(event: OwnEvent): Promise<void> {
    this.own.push(event);
    this.append(event.userId, JSON.stringify(event.data), event.type);
  }
}

/** A socket with room for `roomBytes`, which the test makes. */
export class FakeSocket implements OutgoingBody {
  readonly reader: EventReader;
  readonly source: OutgoingSource;
  ended = false;
  cutOff = false;
  sends = 0;
  largestBytes = 0;
  #roomBytes: number;
  #waiting = false;
  /** Text that was accepted and has not left. */
  #kept = '';

  constructor(source: OutgoingSource, roomBytes: number, lastEventId = '') {
    this.source = source;
    this.reader = new EventReader(lastEventId);
    this.#roomBytes = roomBytes;
    source.start(this);
  }

  get closed(): boolean {
    return this.ended || this.cutOff;
  }

  get waiting(): boolean {
    return this.#waiting;
  }

  send(bytes: Uint8Array | string): boolean {
    if (this.closed) throw new Error('sent after the end');
    if (this.#waiting) throw new Error('sent without waiting for room');
    const text = typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString();
    this.sends += 1;
    this.largestBytes = Math.max(this.largestBytes, text.length);
    this.#kept += text;
    this.#leave();
    this.#waiting = this.#kept !== '';
    return !this.#waiting;
  }

  end(): void {
    this.reader.push(this.#kept);
    this.#kept = '';
    this.ended = true;
  }

  cut(): void {
    this.cutOff = true;
    this.source.lost();
  }

  /** The client reads on. */
  makeRoom(bytes: number): void {
    if (this.closed) return;
    this.#roomBytes += bytes;
    this.#leave();
    if (!this.#waiting || this.#kept !== '') return;
    this.#waiting = false;
    this.source.drained();
  }

  /** The client goes away. */
  disconnect(): void {
    if (this.closed) return;
    this.cutOff = true;
    this.source.lost();
  }

  #leave(): void {
    this.reader.push(this.#kept.slice(0, this.#roomBytes));
    const left = this.#kept.slice(this.#roomBytes);
    this.#roomBytes -= this.#kept.length - left.length;
    this.#kept = left;
  }
}

/** Time and turns under the test's control. */
export class ManualWorld {
  nowMs: number;
  #immediates: (() => void)[] = [];
  #timers: { dueMs: number; run: () => void }[] = [];
  readonly schedule: Schedule = {
    immediate: (run) => {
      this.#immediates.push(run);
    },
    timer: (delayMs, run) => {
      const timer = { dueMs: this.nowMs + delayMs, run };
      this.#timers.push(timer);
      return () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      };
    },
  };
  readonly clock = () => this.nowMs;

  constructor(nowMs = 1_760_000_000_000) {
    this.nowMs = nowMs;
  }

  get pending(): number {
    return this.#immediates.length;
  }

  /** One turn of the event loop; false when nothing was waiting. */
  turn(): boolean {
    const due = this.#immediates;
    this.#immediates = [];
    for (const run of due) run();
    return due.length > 0;
  }

  settle(): void {
    for (let turns = 0; this.turn(); turns += 1) {
      if (turns > 100_000) throw new Error('it never comes to rest');
    }
  }

  /** Moves time in steps of a second, with everything that falls due. */
  advance(durationMs: number): void {
    const endMs = this.nowMs + durationMs;
    while (this.nowMs < endMs) {
      this.nowMs = Math.min(endMs, this.nowMs + 1_000);
      const due = this.#timers.filter((timer) => timer.dueMs <= this.nowMs);
      this.#timers = this.#timers.filter((timer) => timer.dueMs > this.nowMs);
      for (const timer of due) timer.run();
      this.settle();
    }
  }
}
