/**
 * Output of the tour: sends each request with fetch, prints request and answer without secrets, and repeats it after
 * `Retry-After` when it is answered with 429.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer, Json } from '../kit/agent.ts';

const SHOWN_CHARACTERS = 480;
/** Refusals in a row after which a step gives up. */
const WAITS_MAX = 8;
/** A gateway that does not answer a step within this is not well. */
const STEP_TIMEOUT_MS = 60_000;

export interface Exchange {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'HEAD';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, instead of a body of JSON. */
  readonly content?: Uint8Array;
  /** The status that has to come; 200 unless given. */
  readonly status?: number;
  /** Fields of the answer that are printed. */
  readonly shows?: readonly string[];
}

/** An answer with the bytes of its body. */
export interface Given extends Answer {
  readonly bytes: Buffer;
}

/** Checks an answer; throws `StepFailed` through `fail`. */
export type Expectation = (answer: Given, fail: (why: string) => never) => void;

/** A step did not come out as it must. The message says which and why. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';
}

export class Guide {
  readonly #base: string;
  readonly #write: (text: string) => void;
  readonly #colours: boolean;
  readonly #secrets = new Set<string>();
  #step = 0;

  constructor(base: string, write: (text: string) => void, colours: boolean) {
    this.#base = base;
    this.#write = write;
    this.#colours = colours;
  }

  /** The address of a path, for what `ask` cannot do. */
  urlOf(path: string): URL {
    return new URL(path, this.#base);
  }

  get steps(): number {
    return this.#step;
  }

  /** From now on this text is printed as its first characters only. Returns it. */
  secret(text: string): string {
    if (text.length > 8) this.#secrets.add(text);
    return text;
  }

  title(text: string): void {
    this.#step += 1;
    this.#write(`\n${this.#paint('1', `${String(this.#step).padStart(2)}. ${text}`)}\n`);
  }

  note(text: string): void {
    this.#write(`    ${this.#paint('2', this.#cut(text))}\n`);
  }

  good(text: string): void {
    this.#write(`    ${this.#paint('32', '✓')} ${this.#cut(text)}\n`);
  }

  bad(text: string): void {
    this.#write(`    ${this.#paint('31', '✗')} ${this.#cut(text)}\n`);
  }

  /**
   * One request and its answer, printed. The answer must have the status that is expected and pass `expect`. `learn`
   * names the secrets of the answer before it is printed.
   */
  async ask(
    exchange: Exchange,
    expect: Expectation = () => {},
    learn: (answer: Answer) => readonly string[] = () => [],
  ): Promise<Given> {
    const { content, path, headers = {}, status = 200 } = exchange;
    const bare = exchange.body === undefined && content === undefined;
    const { method = bare ? 'GET' : 'POST' } = exchange;
    const json = exchange.body === undefined ? '' : ` ${JSON.stringify(exchange.body)}`;
    const sent = content === undefined ? json : ` (${content.length} bytes)`;
    const shownHeaders = Object.entries(headers).map(([name, value]) => `\n      ${name}: ${value}`);
    this.#write(
      `    ${this.#paint('36', `${method} ${this.#cut(path)}`)}${this.#cut(sent + shownHeaders.join(''))}\n`,
    );
    const answer = await this.#politely(method, exchange);
    for (const text of learn(answer)) this.secret(text);
    const limit = answer.headers.get('x-ratelimit');
    const tail = limit === null ? '' : ` · X-RateLimit: ${limit}`;
    this.#write(`    ${answer.status} in ${answer.elapsedMs} ms${this.#paint('2', tail)}\n`);
    for (const name of exchange.shows ?? [])
      this.#write(`      ${name}: ${this.#cut(answer.headers.get(name) ?? '')}\n`);
    const isText = /json|text/.test(answer.headers.get('content-type') ?? 'text');
    const shown = isText ? answer.text : `(${answer.bytes.length} bytes)`;
    if (shown !== '') this.#write(`    ${this.#paint('2', this.#cut(shown))}\n`);
    const fail = (why: string): never => {
      throw new StepFailed(`${method} ${path}: ${why}`);
    };
    if (answer.status !== status)
      fail(`HTTP ${answer.status} instead of ${status}: ${this.#cut(answer.text)}`);
    expect(answer, fail);
    return answer;
  }

  async #politely(method: string, exchange: Exchange): Promise<Given & { elapsedMs: number }> {
    for (let waits = 0; ; waits += 1) {
      const startMs = performance.now();
      const answer = await this.#send(method, exchange);
      const elapsedMs = Math.round(performance.now() - startMs);
      if (answer.status !== 429 || waits === WAITS_MAX) return { ...answer, elapsedMs };
      const waitSeconds = Number(answer.headers.get('retry-after'));
      if (!(waitSeconds >= 1 && waitSeconds <= 60))
        throw new StepFailed(`429 without a usable Retry-After: ${answer.headers.get('retry-after')}`);
      this.note(`429: over the limit, waiting ${waitSeconds} s as Retry-After says`);
      await pause(waitSeconds * 1_000);
    }
  }

  async #send(method: string, { path, headers = {}, body, content }: Exchange): Promise<Given> {
    try {
      const response = await fetch(`${this.#base}${path}`, {
        method,
        redirect: 'manual',
        headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(content === undefined ? {} : { body: Buffer.from(content) }),
        signal: AbortSignal.timeout(STEP_TIMEOUT_MS),
      });
      const bytes = Buffer.from(await response.arrayBuffer());
      const text = bytes.toString('utf8');
      return { status: response.status, headers: response.headers, text, json: parse(text), bytes };
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      throw new StepFailed(
        `no answer from ${this.#base}${path}: ${cause instanceof Error ? cause.message : cause}`,
      );
    }
  }

  #cut(text: string): string {
    let shown = text;
    for (const secret of this.#secrets) shown = shown.replaceAll(secret, `${secret.slice(0, 6)}…`);
    if (shown.length <= SHOWN_CHARACTERS) return shown;
    return `${shown.slice(0, SHOWN_CHARACTERS)}… (${shown.length} characters)`;
  }

  #paint(code: string, text: string): string {
    return this.#colours && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
  }
}

/** Answers without a body, or with one that is no JSON, read as an empty object: the expectation then names the field. */
function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    if (error instanceof SyntaxError) return {} as Json;
    throw error;
  }
}
