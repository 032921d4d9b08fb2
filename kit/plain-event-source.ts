/**
 * An EventSource as the HTML Standard describes it (9.2), and nothing more: it connects again after a lost or refused
 * connection, after the time that the server names, and never after an answer that is no event stream.
 */
import { type ClientRequest, get, type IncomingMessage } from 'node:http';

/** HTML Standard 9.2.2: a few seconds, until the server says otherwise. Milliseconds. */
const RETRY_MS = 3_000;

export interface PlainEventSourceOptions {
  /** Asked for each connection: behind one address there may be several servers. */
  readonly url: () => string;
  readonly cookie: string;
  /** Called at every change: `open`, `waiting` for the next try, or `failed` for good. */
  readonly onState: (source: PlainEventSource) => void;
  /** Called once: the server has named a position, so nothing after it is missed over connections that end. */
  readonly onPosition?: () => void;
  /** An event with data (HTML Standard 9.2.6). */
  readonly onEvent?: (type: string, data: string) => void;
}

export class PlainEventSource {
  readonly #options: PlainEventSourceOptions;
  state: 'connecting' | 'open' | 'waiting' | 'failed' | 'closed' = 'connecting';
  /** Times that an event stream began. */
  opened = 0;
  /** Tries that met no listener. */
  refused = 0;
  /** Status of the answer that ended it for good. */
  failure: number | undefined;
  #retryMs = RETRY_MS;
  #lastEventId = '';
  #type = '';
  #data: string[] = [];
  #request: ClientRequest | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PlainEventSourceOptions) {
    this.#options = options;
    this.#connect();
  }

  close(): void {
    this.state = 'closed';
    clearTimeout(this.#timer);
    this.#request?.destroy();
  }

  #connect(): void {
    const { url, cookie } = this.#options;
    this.state = 'connecting';
    const resume = this.#lastEventId === '' ? {} : { 'Last-Event-ID': this.#lastEventId };
    const headers = { Accept: 'text/event-stream', 'Cache-Control': 'no-store', Cookie: cookie, ...resume };
    const request = get(url(), { headers });
    this.#request = request;
    request.once('response', (response) => this.#take(request, response));
    request.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED') this.refused += 1;
      this.#wait(request);
    });
  }

  #take(request: ClientRequest, response: IncomingMessage): void {
    const isStream = /^text\/event-stream\s*(;|$)/.test(response.headers['content-type'] ?? '');
    if (response.statusCode !== 200 || !isStream) {
      this.failure = response.statusCode;
      this.#become('failed');
      response.resume();
      return;
    }
    this.opened += 1;
    let rest = '';
    // An event that a lost connection cut off is not dispatched.
    this.#type = '';
    this.#data = [];
    response.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.#read(line);
    });
    // A body that breaks off is a lost connection, as its end is.
    response.once('error', () => this.#wait(request)).once('end', () => this.#wait(request));
    this.#become('open');
  }

  #read(line: string): void {
    if (line === '') this.#dispatch();
    const [, name, value = ''] = /^(id|retry|event|data): ?(.*)$/.exec(line) ?? [];
    if (name === 'id') this.#keepPosition(value);
    if (name === 'event') this.#type = value;
    if (name === 'data') this.#data.push(value);
    if (name === 'retry' && /^[0-9]+$/.test(value)) this.#retryMs = Number(value);
  }

  #keepPosition(id: string): void {
    const isFirst = this.#lastEventId === '';
    this.#lastEventId = id;
    if (isFirst) this.#options.onPosition?.();
  }

  #dispatch(): void {
    if (this.#data.length > 0) this.#options.onEvent?.(this.#type, this.#data.join('\n'));
    this.#type = '';
    this.#data = [];
  }

  /** Once a request, however many events tell of its end. */
  #wait(request: ClientRequest): void {
    if (request !== this.#request || this.state === 'closed' || this.state === 'failed') return;
    this.#request = undefined;
    this.#timer = setTimeout(() => this.#connect(), this.#retryMs);
    this.#become('waiting');
  }

  #become(state: 'open' | 'waiting' | 'failed'): void {
    this.state = state;
    this.#options.onState(this);
  }
}
