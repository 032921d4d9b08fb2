/**
 * HTTP client of the pages: unwraps the success envelope, throws `ApiError` for refusals, and notifies listeners when the
 * session ends.
 */

/** A refusal of the gateway, or no answer at all (`status` 0). */
export class ApiError extends Error {
  /**
   * @param {number} status HTTP status; 0 when the gateway was not reached.
   * @param {number} code Of the error table; 0 when there is none.
   * @param {string} message
   * @param {number | undefined} retryAfterSeconds
   */
  constructor(status, code, message, retryAfterSeconds) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** There is no session, or it has ended. */
  get isSessionOver() {
    return this.status === 401;
  }
}

/** @type {Set<() => void>} */
const sessionListeners = new Set();

/** Calls back for each answer that the session has ended. Returns the unsubscribe function. */
export function onSessionOver(listener) {
  sessionListeners.add(listener);
  return () => sessionListeners.delete(listener);
}

const TRIES_MAX = 3;
const WAIT_SECONDS_MAX = 10;

/** @type {Set<() => void>} */
const backListeners = new Set();

/** Calls back after a new log-in, so that failed requests can be repeated. */
export function onSessionBack(listener) {
  backListeners.add(listener);
  return () => backListeners.delete(listener);
}

export function sessionIsBack() {
  for (const listener of [...backListeners]) listener();
}

/** A new key for `Idempotency-Key`: repeats of one act share it. */
export function newKey() {
  return crypto.randomUUID();
}

/** A page of a list and the address of the next one (RFC 8288), undefined after the last. */
export async function getPage(path, query) {
  const { value, answer } = await answered('GET', path, { query });
  const [, next] = /<([^>]+)>; rel="next"/.exec(answer.headers.get('Link') ?? '') ?? [];
  return { rows: value.result, next };
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{ query?: Record<string, unknown>, body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }} [options]
 * @returns {Promise<any>} the value of `result`
 */
export async function call(method, path, options) {
  const { value } = await answered(method, path, options);
  return value?.result ?? value;
}

async function answered(method, path, options) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await answeredOnce(method, path, options);
    } catch (error) {
      // Over the limit a request was refused before it had an effect, and a read has none: both are repeated.
      const waits =
        error instanceof ApiError &&
        (error.status === 429 || (error.status === 503 && method === 'GET')) &&
        error.retryAfterSeconds <= WAIT_SECONDS_MAX;
      if (!waits || tries === TRIES_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, error.retryAfterSeconds * 1_000));
    }
  }
}

async function answeredOnce(method, path, { query, body, headers, signal } = {}) {
  const answer = await send(method, withQuery(path, query), {
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  });
  const text = await answer.text();
  const value = parse(text);
  if (answer.ok) return { answer, value };
  throw refusalOf(answer, value);
}

export const get = (path, query, options) => call('GET', path, { query, ...options });
export const post = (path, body, options) => call('POST', path, { body, ...options });

/** The request itself, for bodies other than JSON. Rejects with `ApiError` when there is no answer. */
export async function send(method, path, init) {
  try {
    return await fetch(path, { method, credentials: 'same-origin', cache: 'no-store', ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiError(0, 0, 'The gateway does not answer. Check the connection and try again.', undefined);
  }
}

/** The error of a refused answer. `value`: its body as JSON, undefined for another body. */
export function refusalOf(answer, value) {
  const wait = Number(answer.headers.get('Retry-After') ?? Number.NaN);
  const retryAfterSeconds = Number.isFinite(wait) ? wait : undefined;
  const { message: said, detail } = value?.error ?? {};
  const message = said === undefined ? `The gateway answered ${answer.status}` : joined(said, detail);
  const error = new ApiError(answer.status, value?.error?.code ?? 0, message, retryAfterSeconds);
  if (error.isSessionOver) for (const listener of sessionListeners) listener();
  return error;
}

function joined(message, detail) {
  if (detail === undefined) return message;
  const faults = detail.split('; ').map((fault) => FIELD_FAULT.exec(fault));
  if (faults.includes(null)) return `${message}: ${detail}`;
  return faults.map(([, path, expected]) => `${labelOf(path)} ${expected}`).join('. ');
}

/** The fault of one field of a body or a query: its path, then the expected value. */
const FIELD_FAULT = /^(?:body|query)\/([^:]*): (.*)$/;

/** The path `answers/0/openWhen` as a label: `Answers 1, open when`. */
function labelOf(path) {
  const words = path
    .split('/')
    .map((step) =>
      /^[0-9]+$/.test(step) ? Number(step) + 1 : step.replace(/(?<=[a-z0-9])(?=[A-Z])/g, ' ').toLowerCase(),
    );
  const text = words.reduce((label, step) =>
    typeof step === 'number' ? `${label} ${step}` : `${label}, ${step}`,
  );
  return `${text}`.replace(/^./, (first) => first.toUpperCase());
}

export function withQuery(path, query = {}) {
  const fields = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') fields.set(name, String(value));
  }
  const text = fields.toString();
  return text === '' ? path : `${path}?${text}`;
}

function parse(text) {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A sentence for the user: the failure, and when to try again where that is known. */
export function sentenceOf(error) {
  const wait = error instanceof ApiError ? error.retryAfterSeconds : undefined;
  const text = error instanceof Error ? error.message : String(error);
  return wait === undefined ? text : `${text}. Try again in ${wait} s.`;
}
