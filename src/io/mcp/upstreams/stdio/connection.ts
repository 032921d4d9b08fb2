/**
 * Messages over the pipes of a process: the answer of a call goes to the call that its id names, as the server wrote it;
 * everything else goes to the official client.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { memberSpans } from '../../../../domain/raw-json.ts';
import { SECOND_MS } from '../../../../domain/time.ts';
import type { CallChannel, ChannelEnd } from '../../../http-client/types.ts';
import type { ProgressReport } from '../../../modules/streamed-answer.ts';
import { isObject } from '../../input-schema.ts';
import { parsedMessage, progressOf } from '../message.ts';
import type { UpstreamPipe } from '../types.ts';
import { ErrorOutput } from './error-output.ts';
import type { Line } from './lines.ts';
import { type ServerCommand, ServerProcess } from './process.ts';

/** Messages of the server that answer no call, in a second; then its output is read no further until the next one. */
const MESSAGES_PER_SECOND_MAX = 1_000;
/** A process that ended sooner is started again with growing pauses, although it has listed its tools. */
const SETTLED_MS = 60 * SECOND_MS;

/** The usual beginnings of a response: with its id, and with the id behind the result. */
const ID_FIRST =
  /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]{1,32}")\s*,\s*"(?:result|error)"\s*:/;
const RESULT_FIRST = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"\s*:/;
const ID_LAST = /,\s*"id"\s*:\s*("[^"\\]{1,32}")\s*\}\s*$/;

/** The client counts its own requests in numbers. */
const CALL_ID = /^"g\d+"$/;

interface ConnectionDeps {
  readonly timer: (delayMs: number, run: () => void) => () => void;
  readonly monotonicMs: () => number;
  /** A line of its standard error, or of its output that is no message. */
  readonly onSaid: (line: string) => void;
  /** Once, with the reason; no process is left. */
  readonly onExit: (reason: string) => void;
}

interface PendingCall {
  readonly ended: (end: ChannelEnd) => void;
  readonly onProgress: (report: ProgressReport) => void;
}

export class StdioConnection implements Transport, UpstreamPipe {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Negotiated. */
  protocolVersion: string | undefined;
  readonly #command: ServerCommand;
  readonly #deps: ConnectionDeps;
  /** Calls by the JSON text of their id. */
  readonly #calls = new Map<string, PendingCall>();
  readonly #errorOutput: ErrorOutput;
  #process: ServerProcess | undefined;
  #startedMs = 0;
  #secondMs = Number.NEGATIVE_INFINITY;
  #messages = 0;

  constructor(command: ServerCommand, deps: ConnectionDeps) {
    this.#command = command;
    this.#deps = deps;
    this.#errorOutput = new ErrorOutput(deps.onSaid, deps.monotonicMs);
  }

  async start(): Promise<void> {
    this.#startedMs = this.#deps.monotonicMs();
    const listener = {
      onLine: (line: Line) => this.#line(line),
      onErrorOutput: (bytes: Buffer) => this.#errorOutput.read(bytes),
      onExit: (reason: string) => this.#exited(reason),
    };
    this.#process = new ServerProcess(this.#command, listener, this.#deps.timer);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#process?.write(JSON.stringify(message)) !== true)
      throw new Error('the process does not read its input');
  }

  /** Resolves when no process is left. */
  async close(): Promise<void> {
    await this.#process?.end();
  }

  setProtocolVersion(version: string): void {
    this.protocolVersion = version;
  }

  channel(id: string, onProgress: PendingCall['onProgress']): CallChannel {
    return {
      begin: (body, ended) => {
        if (this.#process?.write(body) !== true) return undefined;
        this.#calls.set(id, { ended, onProgress });
        return () => this.#calls.delete(id);
      },
    };
  }

  notify(body: string): void {
    this.#process?.write(body);
  }

  /** Calls are running: one that takes long may keep the server from anything else. */
  get isBusy(): boolean {
    return this.#calls.size > 0;
  }

  get isSettled(): boolean {
    return this.#deps.monotonicMs() - this.#startedMs >= SETTLED_MS;
  }

  #line(line: Line): boolean {
    const id = answeredId(line);
    const isCall = id !== undefined && CALL_ID.test(id);
    if (isCall && this.#answer(id, line)) return true;
    // Nothing waits any more for the answer of a call that was cancelled or took too long.
    if (!isCall && line.whole !== undefined && line.whole.length > 0)
      this.#message(line.whole.toString('utf8'));
    const nowMs = this.#deps.monotonicMs();
    if (nowMs - this.#secondMs >= SECOND_MS) {
      this.#secondMs = nowMs;
      this.#messages = 0;
    }
    this.#messages += 1;
    return this.#messages % MESSAGES_PER_SECOND_MAX !== 0;
  }

  /** False: no such call is running. */
  #answer(id: string, { whole: body }: Line): boolean {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (body === undefined) call?.ended({ error: 'ModuleAnswerTooLarge', reason: 'a line over the cap' });
    else call?.ended({ body });
    return call !== undefined;
  }

  #message(text: string): void {
    const message = parsedMessage(text);
    if (!isObject(message)) {
      // Many servers greet on their standard output.
      this.#errorOutput.line(text);
      return;
    }
    if (message['method'] === 'notifications/progress') {
      const progress = progressOf(message['params']);
      const call = progress === undefined ? undefined : this.#calls.get(progress.token);
      if (progress !== undefined && call !== undefined) call.onProgress(progress.report);
      return;
    }
    try {
      this.onmessage?.(message as unknown as JSONRPCMessage);
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #exited(reason: string): void {
    this.#errorOutput.end();
    const { last } = this.#errorOutput;
    const said = last === '' ? reason : `${reason}: ${last}`;
    for (const { ended } of this.#calls.values()) ended({ error: 'ModuleFailed', reason });
    this.#calls.clear();
    this.onclose?.();
    this.#deps.onExit(said);
  }
}

/** The JSON text of the id of a response that is text; undefined for other messages. */
function answeredId({ whole, head, tail }: Line): string | undefined {
  const first = ID_FIRST.exec(head)?.[1];
  if (first !== undefined) return first;
  if (RESULT_FIRST.test(head)) {
    const last = ID_LAST.exec(tail)?.[1];
    if (last !== undefined) return last;
  }
  if (whole === undefined || !head.trimStart().startsWith('{')) return undefined;
  const text = whole.toString('utf8');
  const spans = memberSpans(text);
  const span = spans.get('id');
  if (span === undefined || spans.has('method')) return undefined;
  return text.slice(span.start, span.end);
}
