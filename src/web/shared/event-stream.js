/**
 * One connection to the gateway's server-sent events, resumed until it is closed or the session ends. It uses fetch:
 * EventSource hides the status of a refusal, the position of a comment, and a connection that is silently dead.
 */

/** The gateway sends a byte at least every 24 s; a connection that is silent for longer is dead. Milliseconds. */
const SILENCE_MS = 60_000;
/** Longest wait after consecutive failures. Milliseconds. */
const WAIT_MAX_MS = 30_000;
const FIRST_WAIT_MS = 1_000;

/**
 * @typedef {{ id: string, type: string, text: string }} Dispatched
 * `id`: the position in the log after it. `text`: its data lines.
 */

/** Reads the lines of a stream (HTML Standard 9.2.6). */
export class EventParser {
  #rest = '';
  #type = '';
  /** @type {string[]} */
  #data = [];
  #id;

  /**
   * @param {string} id The position from which the stream continues.
   * @param {{ onEvent: (event: Dispatched) => void, onPosition: (id: string) => void, onRetry: (milliseconds: number) => void }} sink
   */
  constructor(id, sink) {
    this.#id = id;
    this.sink = sink;
  }

  /** @param {string} text */
  push(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#line(line.endsWith('\r') ? line.slice(0, -1) : line);
  }

  /** @param {string} line */
  #line(line) {
    if (line === '') return this.#dispatch();
    const at = line.indexOf(':');
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? '' : line.slice(at + 1).replace(/^ /, '');
    if (name === 'event') this.#type = value;
    else if (name === 'data') this.#data.push(value);
    else if (name === 'id') this.#id = value;
    else if (name === 'retry' && /^[0-9]+$/.test(value)) this.sink.onRetry(Number(value));
  }

  #dispatch() {
    const [type, data] = [this.#type || 'message', this.#data];
    this.#type = '';
    this.#data = [];
    if (data.length > 0) this.sink.onEvent({ id: this.#id, type, text: data.join('\n') });
    else this.sink.onPosition(this.#id);
  }
}

/**
 * @typedef {object} StreamOptions
 * @property {string} url
 * @property {() => string} position The last position that was reached; '' for from now on. Asked at each connection.
 * @property {(event: Dispatched) => void} onEvent Events of the modules and `reset`.
 * @property {(id: string) => void} onPosition A position without an event.
 * @property {(state: 'connecting' | 'live' | 'waiting') => void} onState
 * @property {AbortSignal} signal
 */

/**
 * Holds a stream until `signal` aborts or the gateway says that it is over.
 *
 * @param {StreamOptions} options
 * @returns {Promise<'signedOut' | 'refused' | 'closed'>} Why it ended.
 */
export async function holdStream(options) {
  const { signal, onState } = options;
  let failures = 0;
  while (!signal.aborted) {
    onState('connecting');
    const end = await readOnce(options);
    if (signal.aborted) break;
    if (end.over !== undefined) return end.over;
    failures = end.wasLive ? 0 : failures + 1;
    const backOffMs =
      Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
    onState('waiting');
    await wait(end.waitMs ?? backOffMs, signal);
  }
  return 'closed';
}

/**
 * One connection, from its request to its end.
 *
 * @param {StreamOptions} options
 */
async function readOnce({ url, position, onEvent, onPosition, onState, signal }) {
  const own = new AbortController();
  const stop = () => own.abort();
  signal.addEventListener('abort', stop);
  let timer = setTimeout(stop, SILENCE_MS);
  /** @type {{ over?: 'signedOut' | 'refused', wasLive: boolean, waitMs?: number }} */
  const end = { wasLive: false };
  try {
    const from = position();
    const query = from === '' ? '' : `?last_event_id=${encodeURIComponent(from)}`;
    const answer = await fetch(url + query, {
      credentials: 'include',
      cache: 'no-store',
      signal: own.signal,
    });
    if (answer.status === 401) end.over = 'signedOut';
    else if (answer.status === 403) end.over = 'refused';
    if (answer.status !== 200 || answer.body === null) {
      end.waitMs = retryAfterMs(answer);
      own.abort();
      return end;
    }
    const parser = new EventParser(from, {
      onRetry: (milliseconds) => {
        end.waitMs = milliseconds;
      },
      onPosition: (id) => {
        if (id === '') return;
        end.wasLive = true;
        onState('live');
        onPosition(id);
      },
      onEvent: (event) => {
        end.wasLive = true;
        onState('live');
        if (event.type === 'bye') end.waitMs = waitAfter(event.text, end.waitMs);
        else onEvent(event);
      },
    });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return end;
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE_MS);
      parser.push(value);
    }
  } catch (error) {
    const expected = error instanceof TypeError || (error instanceof Error && error.name === 'AbortError');
    if (!expected && !own.signal.aborted) reportError(error);
    // The network failed or the connection was silent: `retry` counts only for streams that ended in order.
    return end.wasLive ? { wasLive: true, waitMs: FIRST_WAIT_MS * Math.random() } : { wasLive: false };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

/**
 * A stream that reached its time limit reconnects immediately. One whose session ended reconnects once and is refused.
 *
 * @param {string} text
 * @param {number | undefined} retryMs
 */
function waitAfter(text, retryMs) {
  const { reason } = JSON.parse(text);
  return reason === 'lifetime' || reason === 'session' ? 0 : retryMs;
}

/** @param {Response} answer */
function retryAfterMs(answer) {
  const seconds = Number(answer.headers.get('Retry-After'));
  return seconds > 0 ? seconds * 1_000 : undefined;
}

/**
 * Ends early when the network is back or the page becomes visible.
 *
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 */
function wait(milliseconds, signal) {
  return new Promise((resolve) => {
    const cleanUp = new AbortController();
    const go = () => {
      clearTimeout(timer);
      cleanUp.abort();
      resolve(undefined);
    };
    const timer = setTimeout(go, milliseconds);
    const listen = { signal: cleanUp.signal };
    addEventListener('online', go, listen);
    document.addEventListener(
      'visibilitychange',
      () => document.visibilityState === 'visible' && go(),
      listen,
    );
    signal.addEventListener('abort', go, listen);
  });
}
