/** A request's body as the HTTP front hands it over, sent by the test piece by piece. */

import { IncomingStream } from '../../../src/io/http/body/incoming.ts';
import type {
  IncomingSink,
  PrebufferableBody,
  PrebufferResult,
} from '../../../src/io/http/body/incoming-body.ts';
import type { HttpResponse } from '../../../src/io/http/listen/server.ts';

export class FakeBody implements PrebufferableBody {
  readonly declaredBytes: number | undefined;
  sink: IncomingSink | undefined;
  paused = false;
  discarded = false;
  invited = false;
  /** Times that the client was asked to wait. */
  pauses = 0;
  onResume: (() => void) | undefined;

  constructor(declaredBytes?: number) {
    this.declaredBytes = declaredBytes;
  }

  /** True: the test says by `gathered` when enough is here. */
  gathers = false;
  ended = false;
  gathered: ((found: PrebufferResult) => void) | undefined;

  sendContinue(): void {
    this.invited = true;
  }

  prebuffer(_sizeBytes: number, ready: (found: PrebufferResult) => void): void {
    if (this.gathers) this.gathered = ready;
    else ready('enough');
  }

  read(sink: IncomingSink): void {
    if (this.sink !== undefined) throw new Error('a body is read once');
    this.sink = sink;
  }

  pause(): void {
    if (!this.paused) this.pauses += 1;
    this.paused = true;
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.onResume?.();
  }

  discard(): void {
    this.discarded = true;
  }

  /** Sends like the front: memory that is no longer the sink's once the call is over. */
  send(bytes: Uint8Array): void {
    if (this.discarded) return;
    const lent = Uint8Array.from(bytes);
    this.sink?.data(lent);
    lent.fill(0xee);
  }

  end(): void {
    if (!this.discarded) this.sink?.end();
  }

  lose(): void {
    if (!this.discarded) this.sink?.lost();
  }
}

export function wholeBody(bytes: Uint8Array): FakeBody {
  const body = new FakeBody(bytes.length);
  body.read = (sink) => {
    body.sink = sink;
    body.send(bytes);
    body.end();
  };
  return body;
}

/** A body whose bytes and seconds the test gives. */
export function bodyOf(hasFloor: boolean) {
  const told: string[] = [];
  const rearmed = { pauses: 0, waits: false };
  let deliver: (chunk: ArrayBuffer, isLast: boolean) => void = () => undefined;
  const response = {
    onData(handler: typeof deliver) {
      deliver = handler;
    },
    pause: () => {
      rearmed.pauses += 1;
    },
    resume: () => undefined,
    close: () => told.push('closed'),
  } as unknown as HttpResponse;
  const nothing = () => undefined;
  const hooks = {
    keep: () => true,
    release: nothing,
    ended: nothing,
    failed: nothing,
    waits: () => rearmed.waits,
  };
  const slow = { slow: () => void told.push('slow') };
  const body = new IncomingStream(
    response,
    { contentLength: 1_000_000, awaitsContinue: false },
    hasFloor ? { ...hooks, ...slow } : hooks,
  );
  const read = () => body.read({ data: nothing, end: nothing, lost: () => void told.push('lost') });
  const second = (sizeBytes: number) => {
    if (sizeBytes > 0) deliver(new ArrayBuffer(sizeBytes), false);
    body.onInterval();
  };
  const last = () => deliver(new ArrayBuffer(1), true);
  return { body, told, second, read, last, rearmed };
}
