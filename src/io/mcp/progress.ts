/**
 * Progress of one tools/call. Once its module streams, the answer is an event stream: notifications with the token of the
 * client, then the response. Otherwise the response is the JSON of every call.
 */
import { performance } from 'node:perf_hooks';
import { memberSpan } from '../../domain/raw-json.ts';
import { accepts } from '../http/exchange/accept.ts';
import type { OutgoingBody, OutgoingSource } from '../http/exchange/stream.ts';
import type { Reply, RouteContext } from '../http/table/route.ts';
import type { ProgressReport } from '../modules/streamed-answer.ts';
import { isObject } from './input-schema.ts';
import { paramSpan, type RpcRequest } from './rpc.ts';
import { eventOf, eventStream, frame } from './sse.ts';

/** Characters of the JSON text of a token: every notification repeats it. */
export const TOKEN_MAX = 256;
/** Characters of a message. */
export const MESSAGE_MAX = 500;
/** Notifications of one call, in any second and in all. */
export const SECOND_MAX = 20;
export const CALL_MAX = 1_000;
const WINDOW_MS = 1_000;

export class ProgressStream implements OutgoingSource {
  /** Notifications that were given to the client, and reports of the module that were not. */
  readonly counts = { sent: 0, dropped: 0 };
  readonly #token: string;
  readonly #nowMs: () => number;
  readonly #onBegun: ((stream: ProgressStream) => void)[] = [];
  /** Events that wait for the head of the answer, or for room in the socket; at most `SECOND_MAX`. */
  readonly #waiting: string[] = [];
  #isBegun = false;
  #isLost = false;
  #isBlocked = false;
  #out: OutgoingBody | undefined;
  #end: string | 'bug' | undefined;
  #latest = Number.NEGATIVE_INFINITY;
  #windowMs = Number.NEGATIVE_INFINITY;
  #inWindow = 0;
  #stop: (() => void) | undefined;

  /** `token`: JSON text. `nowMs`: a monotonic clock. */
  constructor(token: string, nowMs: () => number = () => performance.now()) {
    this.#token = token;
    this.#nowMs = nowMs;
  }

  /** The answer of the call: an event stream if the module begins to stream before `whole` is there. */
  reply(whole: Promise<Reply>): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#onBegun.push(() => resolve(eventStream(this)));
      whole.then(
        (reply) => (this.#isBegun ? this.#finish(eventOf(textOf(reply))) : resolve(reply)),
        (error) => {
          if (this.#isBegun) this.#finish('bug');
          else reject(error);
        },
      );
    });
  }

  /** The module streams. `stop` ends its call when the client leaves. */
  begin(stop: (() => void) | undefined): void {
    this.#stop = stop;
    this.#isBegun = true;
    for (const begun of this.#onBegun.splice(0)) begun(this);
  }

  report({ progress, total, message }: ProgressReport): void {
    const event = { progress, total, message: message?.slice(0, MESSAGE_MAX) };
    if (!this.#admits(progress)) {
      this.counts.dropped += 1;
      return;
    }
    this.counts.sent += 1;
    const members = JSON.stringify(event).slice(1);
    const params = `{"progressToken":${this.#token},${members}`;
    this.#waiting.push(frame(`"method":"notifications/progress","params":${params}`));
    this.#flush();
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    this.#flush();
  }

  drained(): void {
    this.#isBlocked = false;
    this.#flush();
  }

  lost(): void {
    this.#isLost = true;
    this.#out = undefined;
    this.#stop?.();
  }

  #admits(progress: number): boolean {
    if (this.#isLost || progress <= this.#latest) return false;
    if (this.counts.sent >= CALL_MAX || this.#waiting.length >= SECOND_MAX) return false;
    const nowMs = this.#nowMs();
    if (nowMs - this.#windowMs >= WINDOW_MS) {
      this.#windowMs = nowMs;
      this.#inWindow = 0;
    }
    if (this.#inWindow >= SECOND_MAX) return false;
    this.#inWindow += 1;
    this.#latest = progress;
    return true;
  }

  #finish(end: string): void {
    this.#end = end;
    this.#flush();
  }

  #flush(): void {
    const out = this.#out;
    if (out === undefined) return;
    while (!this.#isBlocked) {
      const event = this.#waiting.shift();
      if (event === undefined) break;
      this.#isBlocked = !out.send(event);
    }
    if (this.#isBlocked || this.#end === undefined) return;
    this.#out = undefined;
    if (this.#end === 'bug') out.cut('InternalError');
    else {
      out.send(this.#end);
      out.end();
    }
  }
}

/** Undefined unless the client asks for progress and takes an event stream. */
export function progressOf(request: RpcRequest, context: RouteContext): ProgressStream | undefined {
  if (request.method !== 'tools/call') return undefined;
  const meta = request.params['_meta'];
  if (!isObject(meta) || meta['progressToken'] === undefined) return undefined;
  const token = meta['progressToken'];
  if (typeof token !== 'string' && !Number.isInteger(token)) return undefined;
  // Clients that send a wildcard do not expect a stream.
  if (!accepts(context.header('accept') ?? '', 'text/event-stream')) return undefined;
  const metaSpan = paramSpan(request, '_meta');
  const span = metaSpan && memberSpan(request.text, 'progressToken', metaSpan.start);
  if (span === undefined || span.end - span.start > TOKEN_MAX) return undefined;
  return new ProgressStream(request.text.slice(span.start, span.end));
}

function textOf({ body }: Reply): string {
  return typeof body === 'string' ? body : Buffer.from(body ?? '').toString('utf8');
}
