/**
 * Events of one sandbox module, rebuilt from its records at start and served at `GET /events?after=&limit=`. `data` is
 * kept as JSON text: amounts are JSON numbers there (spec 2.6) and must keep their exact digits.
 */

import { limitOf } from './call-arguments.ts';
import { SandboxError } from './errors.ts';

/** Events kept; older ones are gone, as they would be from a real module's outbox. */
const EVENTS_MAX = 100_000;

export interface ModuleEvent {
  readonly tick: string;
  readonly type: string;
  /** The user it concerns; null for all users. */
  readonly crmId: string | null;
  /** Network type, 0 to 255, for routing beside `crmId`; of wallet events alone. */
  readonly netType?: number;
  /** JSON text of an object. */
  readonly data: string;
}

export class EventList {
  readonly #module: string;
  #events: ModuleEvent[] = [];

  constructor(module: string) {
    this.#module = module;
  }

  /** Ticks never go down; several events may have the same one. */
  add(event: ModuleEvent): void {
    this.#events.push(event);
    if (this.#events.length > EVENTS_MAX * 1.1) this.#events = this.#events.slice(-EVENTS_MAX);
  }

  /** JSON text of the page after the tick, exclusive. It is longer than `limit` where it would split a tick. */
  page(query: ReadonlyMap<string, string>): string {
    const after = query.get('after') ?? '0';
    if (!/^[0-9]{1,19}$/.test(after)) throw new SandboxError('BadRequest', 'after is a tick');
    const start = this.#firstAfter(BigInt(after));
    let end = start + limitOf(query, 100, 1_000);
    while (end < this.#events.length && this.#events[end]?.tick === this.#events[end - 1]?.tick) end += 1;
    const page = this.#events.slice(start, end);
    return `{"result":{"events":[${page.map((event) => this.#textOf(event)).join(',')}]}}`;
  }

  #textOf(event: ModuleEvent): string {
    const { tick, type, crmId, netType } = event;
    const head = { module: this.#module, tick, type };
    const routed = {
      ...head,
      ...(crmId === null ? {} : { crmId }),
      ...(netType === undefined ? {} : { netType }),
    };
    return `${JSON.stringify(routed).slice(0, -1)},"data":${event.data}}`;
  }

  #firstAfter(tick: bigint): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (BigInt(this.#events[middle]?.tick ?? 0) > tick) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
