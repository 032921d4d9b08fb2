/**
 * Forwards a module's answer to the client of a proxied call. A short answer is sent whole; a long one, or one of unknown
 * length, is streamed with back-pressure. An incomplete answer closes the connection, so it never looks complete.
 */

import { type ErrorName, GatewayError } from '../../domain/errors.ts';
import type { RefusedBy } from '../../domain/limits/bounds.ts';
import { type OutgoingBody, type OutgoingSource, StreamReply } from '../http/exchange/stream.ts';
import { Reply } from '../http/table/route.ts';
import { type AnsweredCall, answerHeaders, answerType } from '../http-client/answer-headers.ts';
import type { AnswerHead, RelayFlow, RelayListener } from '../http-client/relay.ts';
import { type ModuleError, tooManyCalls } from '../http-client/types.ts';

/** Answers up to this size are sent in one piece; of longer ones at most this is buffered. */
const HELD_BYTES_MAX = 64 * 1024;
const NO_BODY = new Set([204, 304]);

/** The end of a call: the module's status, or a failure, such as a disconnect of the client. */
export type ProxiedEnding =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly error: ModuleError };

interface ProxiedCallOptions extends AnsweredCall {
  readonly isHead: boolean;
  /** Called once, at the end of the module's answer. */
  readonly onEnded: (ending: ProxiedEnding) => void;
}

export class ProxiedCall implements RelayListener, OutgoingSource {
  /** The answer; rejects with an entry of the error table. */
  readonly reply: Promise<Reply>;
  readonly #options: ProxiedCallOptions;
  #resolve: (reply: Reply) => void = () => undefined;
  #reject: (error: GatewayError) => void = () => undefined;
  #flow: RelayFlow | undefined;
  #head: AnswerHead | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #paused = false;
  #opened = false;
  #out: OutgoingBody | undefined;
  /** The client's socket is full. */
  #waiting = false;
  #ended = false;
  #failed: ModuleError | undefined;

  constructor(options: ProxiedCallOptions) {
    this.#options = options;
    this.reply = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Sets the flow control of the module's call. */
  attach(flow: RelayFlow): void {
    this.#flow = flow;
  }

  head(head: AnswerHead): void {
    this.#head = head;
    if (this.#isBodiless(head)) return;
    const { lengthBytes: length } = head;
    if (length === undefined) {
      // A short answer without a length is often complete within this event-loop tick.
      setImmediate(() => this.#open());
    } else if (length > HELD_BYTES_MAX) this.#open();
  }

  data(bytes: Buffer): void {
    if (this.#out !== undefined && !this.#waiting) {
      this.#send(bytes);
      return;
    }
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    const isShort = !this.#opened && this.#out === undefined && this.#heldBytes <= HELD_BYTES_MAX;
    if (!isShort) this.#pause();
  }

  ended(): void {
    this.#ended = true;
    const head = this.#head;
    if (head === undefined) return;
    this.#options.onEnded({ kind: 'answered', status: head.status });
    if (!this.#opened) this.#resolve(this.#whole(head));
    else if (!this.#waiting && this.#held.length === 0) this.#out?.end();
  }

  failed(error: ModuleError, refusedBy?: RefusedBy): void {
    this.#failed = error;
    this.#held = [];
    this.#options.onEnded({ kind: 'failed', error });
    // After an abort the answer is not read.
    if (!this.#opened) this.#reject(refusalOf(error, refusedBy));
    else this.#out?.cut(cutBy(error));
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    if (this.#failed !== undefined) out.cut(cutBy(this.#failed));
    else this.#continue();
  }

  drained(): void {
    this.#waiting = false;
    this.#continue();
  }

  lost(): void {
    this.#held = [];
    this.#flow?.stop();
  }

  #isBodiless({ status }: AnswerHead): boolean {
    return this.#options.isHead || NO_BODY.has(status);
  }

  /** Switches to streaming. */
  #open(): void {
    const head = this.#head;
    if (this.#ended || this.#failed !== undefined || this.#opened || head === undefined) return;
    this.#opened = true;
    const { lengthBytes } = head;
    const contentType = answerType(head.contentType);
    this.#resolve(
      new StreamReply(head.status, this, {
        headers: answerHeaders(head, this.#options),
        ...(contentType === undefined ? {} : { contentType }),
        ...(lengthBytes === undefined ? {} : { lengthBytes }),
      }),
    );
  }

  #whole(head: AnswerHead): Reply {
    const contentType = answerType(head.contentType);
    const asHead = this.#options.isHead ? { lengthBytes: head.lengthBytes } : undefined;
    const [only = null, ...more] = this.#held;
    const body = more.length === 0 ? only : Buffer.concat(this.#held, this.#heldBytes);
    this.#held = [];
    return new Reply(head.status, body, contentType, answerHeaders(head, this.#options), asHead);
  }

  /** Sends the buffered bytes, then resumes the module or ends the answer. */
  #continue(): void {
    if (this.#held.length > 0) {
      const bytes = Buffer.concat(this.#held, this.#heldBytes);
      this.#held = [];
      this.#heldBytes = 0;
      this.#send(bytes);
    }
    if (this.#waiting) return;
    if (this.#ended) this.#out?.end();
    else if (this.#paused) {
      this.#paused = false;
      this.#flow?.resume();
    }
  }

  #send(bytes: Buffer): void {
    this.#waiting = this.#out?.send(bytes) === false;
    if (this.#waiting) this.#pause();
  }

  #pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#flow?.pause();
  }
}

/** Returns the error that the log names beside the status of success; a client that left is no failure. */
function cutBy(error: ModuleError): ErrorName | undefined {
  return error === 'Aborted' ? undefined : error;
}

function refusalOf(error: ModuleError, refusedBy?: RefusedBy): GatewayError {
  if (error === 'AccessRateLimit') return tooManyCalls(refusedBy);
  return new GatewayError(error === 'Aborted' ? 'ModuleFailed' : error);
}
