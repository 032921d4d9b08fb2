/**
 * Events of the gateway in a page, one connection for all tabs: HTTP/1.1 allows six per origin. The tab that holds a Web
 * Lock reads the stream and forwards it over a BroadcastChannel; its successor continues from the last position.
 */
import { holdStream } from './event-stream.js';

/**
 * @typedef {'connecting' | 'live' | 'waiting' | 'signedOut' | 'refused' | 'closed'} EventsState
 * @typedef {{ id: string, type: string, text: string, value: { module: string, tick: string, type: string, data: any } }} GatewayEvent
 * `text` is the JSON as received: its amounts have more digits than a number of `value` can hold.
 */

/**
 * `<epoch>-<sequence>`; undefined for ''.
 *
 * @param {string} id
 */
function parsePosition(id) {
  const at = id.lastIndexOf('-');
  return at < 0 ? undefined : { epoch: id.slice(0, at), sequence: Number(id.slice(at + 1)) };
}

/**
 * Is `id` after `position`? A position of another log counts as later.
 *
 * @param {string} id
 * @param {string} position
 */
function isAfter(id, position) {
  const [one, other] = [parsePosition(id), parsePosition(position)];
  if (one === undefined || other === undefined || one.epoch !== other.epoch) return id !== position;
  return one.sequence > other.sequence;
}

/**
 * @typedef {object} EventsOptions
 * @property {(event: GatewayEvent) => void} onEvent Each event of the user once, in order.
 * @property {(positions: { oldest: string, newest: string }) => void} [onReset] Events are missing: the page has
 * to reload its data. The stream continues after `newest`.
 * @property {(state: EventsState) => void} [onState]
 * @property {string} [url]
 * @property {string} [scope] Tabs of the same scope share a stream: the user's id, so that a change of user is clean.
 */

/**
 * Messages between tabs: a question, a state, a position, an event after a position.
 *
 * @typedef {{ ask?: true, state?: EventsState, from?: string, id?: string, type?: string, text?: string }} Message
 */

/**
 * @param {EventsOptions} options
 * @returns {{ close: () => void, readonly state: EventsState, readonly position: string, readonly leads: boolean }}
 */
export function openEvents(options) {
  const client = new SharedEvents(options);
  const leave = () => client.leave();
  /** @param {PageTransitionEvent} shown */
  const join = (shown) => shown.persisted && client.join();
  // A page in the back-forward cache must not hold the stream of the others.
  addEventListener('pagehide', leave);
  addEventListener('pageshow', join);
  client.join();
  return {
    close() {
      removeEventListener('pagehide', leave);
      removeEventListener('pageshow', join);
      client.leave();
      client.setState('closed');
    },
    get state() {
      return client.state;
    },
    get position() {
      return client.position;
    },
    get leads() {
      return client.leads;
    },
  };
}

class SharedEvents {
  #options;
  #name;
  /** @type {BroadcastChannel | undefined} */
  #channel;
  /** @type {AbortController | undefined} */
  #joined;
  /** The last known position of the leader. */
  #heard = '';
  /** Reads events that it missed from the leader. */
  #catchingUp = false;
  /** @type {EventsState} */
  state = 'connecting';
  position = '';
  leads = false;

  /** @param {EventsOptions} options */
  constructor(options) {
    this.#options = { url: '/auth/v1/events', scope: '', ...options };
    this.#name = `gatehouse-events:${this.#options.url}:${this.#options.scope}`;
  }

  join() {
    if (this.#joined !== undefined) return;
    const joined = new AbortController();
    this.#joined = joined;
    if (navigator.locks === undefined || typeof BroadcastChannel === 'undefined') {
      this.#lead(joined.signal).catch(reportError);
      return;
    }
    const channel = new BroadcastChannel(this.#name);
    this.#channel = channel;
    channel.onmessage = ({ data }) => this.#hear(data);
    channel.postMessage({ ask: true });
    navigator.locks
      .request(this.#name, { signal: joined.signal }, () => this.#lead(joined.signal))
      .catch((error) => {
        // Closed before it got the lock.
        if (!joined.signal.aborted) throw error;
      });
  }

  leave() {
    this.#joined?.abort();
    this.#joined = undefined;
    this.#channel?.close();
    this.#channel = undefined;
    this.leads = false;
  }

  /** @param {EventsState} state */
  setState(state) {
    if (this.state === state) return;
    this.state = state;
    this.#options.onState?.(state);
  }

  /**
   * Resolves, and releases the lock, when this tab closes or the session ends; the next leader then gets the same answer.
   *
   * @param {AbortSignal} signal
   */
  async #lead(signal) {
    this.leads = true;
    const end = await holdStream({
      url: this.#options.url,
      signal,
      position: () => this.position,
      onState: (state) => state !== this.state && this.#tell({ state }, () => this.setState(state)),
      onPosition: (id) => this.#tell({ from: this.position, id }, () => this.#reach(id)),
      onEvent: (event) => this.#tell({ from: this.position, ...event }, () => this.#take(event)),
    });
    if (signal.aborted) return;
    this.leads = false;
    this.#tell({ state: end }, () => this.setState(end));
  }

  /**
   * Other tabs are notified first, so that an error in this page's handler does not affect them.
   *
   * @param {Message} message
   * @param {() => void} then
   */
  #tell(message, then) {
    this.#channel?.postMessage(message);
    then();
  }

  /** @param {Message} message */
  #hear(message) {
    if (message.ask === true) {
      if (this.leads)
        this.#channel?.postMessage({ state: this.state, from: this.position, id: this.position });
      return;
    }
    if (this.leads) return;
    if (message.state !== undefined) this.setState(message.state);
    const { id = '', from = '', type, text = '' } = message;
    if (id === '') return;
    this.#heard = id;
    if (this.#catchingUp) return;
    // A new tab begins at the position of the leader.
    if (this.position === '') this.position = from;
    if (type !== 'reset' && isAfter(from, this.position)) this.#catchUp().catch(reportError);
    else if (type === undefined) this.#reach(id);
    else this.#take({ id, type, text });
  }

  /** Reads the events that this tab missed while it was suspended from the gateway. */
  async #catchUp() {
    const joined = this.#joined;
    if (joined === undefined) return;
    const own = new AbortController();
    const stop = () => own.abort();
    joined.signal.addEventListener('abort', stop);
    this.#catchingUp = true;
    const check = () => (this.leads || !isAfter(this.#heard, this.position)) && stop();
    await holdStream({
      url: this.#options.url,
      signal: own.signal,
      position: () => this.position,
      onState: check,
      onPosition: (id) => {
        this.#reach(id);
        check();
      },
      onEvent: (event) => {
        if (!own.signal.aborted) this.#take(event);
        check();
      },
    });
    this.#catchingUp = false;
    joined.signal.removeEventListener('abort', stop);
  }

  /** @param {string} id */
  #reach(id) {
    if (isAfter(id, this.position)) this.position = id;
  }

  /** @param {import('./event-stream.js').Dispatched} event */
  #take({ id, type, text }) {
    if (type !== 'reset' && !isAfter(id, this.position)) return;
    this.position = id;
    const value = JSON.parse(text);
    try {
      if (type === 'reset') this.#options.onReset?.(value);
      else this.#options.onEvent({ id, type, text, value });
    } catch (error) {
      // A fault of the page does not stop later events.
      reportError(error);
    }
  }
}
