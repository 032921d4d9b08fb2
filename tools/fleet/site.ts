/** The gateway of a fleet's day as its clients see it: an address, a restart in between, faults that are collected. */
import { UnexpectedAnswer } from '../../kit/agent.ts';
import type { FleetPlace } from './places.ts';

const PAUSE_MS = 50;
/** Milliseconds for which a client tries again after connections that broke. */
const REPEATED_MS_MAX = 120_000;

export class Site {
  readonly faults: string[] = [];
  /** Acknowledged bytes of uploads, repeated ones included. */
  uploadedBytes = 0;
  /** Connections that broke under a client, and calls that were refused while the gateway started. */
  broken = 0;
  readonly #place: FleetPlace;

  constructor(place: FleetPlace) {
    this.#place = place;
  }

  get url(): string {
    return this.#place.url;
  }

  get internal(): string {
    return this.#place.internal;
  }

  async through(name: string, work: () => Promise<void>): Promise<void> {
    this.broken += await untilAnswered(name, work, this.faults);
  }

  /** Bytes of an answer; throws unless it has this status. */
  async fetchBytes(path: string, status: number, headers: Record<string, string> = {}): Promise<Buffer> {
    const response = await fetch(`${this.url}${path}`, { headers });
    const bytes = Buffer.from(await response.arrayBuffer());
    if (response.status !== status) {
      const text = bytes.toString('utf8', 0, 200);
      throw new UnexpectedAnswer(path, {
        status: response.status,
        headers: response.headers,
        text,
        json: {},
      });
    }
    return bytes;
  }
}

/**
 * Repeats `work` after a broken connection, a time-out or a 503, as a client does; how often. Any other error is a fault
 * of `name`.
 */
export async function untilAnswered(
  name: string,
  work: () => Promise<void>,
  faults: string[],
): Promise<number> {
  const endMs = performance.now() + REPEATED_MS_MAX;
  for (let broken = 0; ; broken += 1) {
    try {
      await work();
      return broken;
    } catch (error) {
      if (!isPassing(error) || performance.now() > endMs) {
        faults.push(`${name}: ${String(error)}`);
        return broken;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** `fetch` throws a TypeError when its connection breaks. */
function isPassing(error: unknown): boolean {
  if (error instanceof UnexpectedAnswer) return error.answer.status === 503;
  return error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError');
}
