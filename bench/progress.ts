/** Progress of a run: a bar that is rewritten on a terminal, plain lines elsewhere, of rounds one a second at most. */
const WIDTH = 24;
const REDRAW_MS = 250;
const SECOND_MS = 1_000;
/** Between two lines of rounds. */
const LINE_EVERY_MS = 1_000;

export interface Progress {
  /** Something begins that is no round: accounts sign up, a peer starts. */
  step(text: string): void;
  /** A round begins; `done` of `total` are over, as far as that is known. */
  round(text: string, done: number, total: number): void;
}

export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export class ProgressBar implements Progress {
  readonly #output: ProgressOutput;
  readonly #nowMs: () => number;
  #scenario = '';
  #text = '';
  #rounds:
    | {
        readonly startedMs: number;
        readonly doneAtMs: number;
        readonly done: number;
        readonly total: number;
      }
    | undefined;
  #saidAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(output: ProgressOutput, nowMs: () => number = () => performance.now()) {
    this.#output = output;
    this.#nowMs = nowMs;
  }

  /** `mcp-call`, or with its place among all: `mcp-call (3 of 20)`. */
  begin(scenario: string): void {
    this.#scenario = scenario;
    this.#rounds = undefined;
    this.#saidAtMs = Number.NEGATIVE_INFINITY;
    if (this.#output.isTTY === true && this.#timer === undefined)
      this.#timer = setInterval(() => this.#draw(), REDRAW_MS).unref();
  }

  step(text: string): void {
    this.#say(text);
  }

  round(text: string, done: number, total: number): void {
    const nowMs = this.#nowMs();
    const startedMs = this.#rounds?.startedMs ?? nowMs;
    this.#rounds = { startedMs, doneAtMs: nowMs, done, total };
    if (this.#output.isTTY !== true && nowMs < this.#saidAtMs + LINE_EVERY_MS) return;
    this.#saidAtMs = nowMs;
    this.#say(text);
  }

  /** Nothing is left on the terminal. */
  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#output.isTTY === true) this.#output.write('\r\x1b[K');
  }

  #say(text: string): void {
    this.#text = text;
    if (this.#output.isTTY === true) this.#draw();
    else this.#output.write(`${this.#scenario}: ${text}\n`);
  }

  #draw(): void {
    const line = `${this.#scenario} ${this.#bar()}${this.#text}`;
    this.#output.write(`\r\x1b[K${line.slice(0, (this.#output.columns ?? 120) - 1)}`);
  }

  /** Rounds take about as long as the ones before; within the first one nothing is known. */
  #bar(): string {
    if (this.#rounds === undefined) return '';
    const { startedMs, doneAtMs, done, total } = this.#rounds;
    const elapsedMs = this.#nowMs() - startedMs;
    const eachMs = done === 0 ? undefined : (doneAtMs - startedMs) / done;
    const within = eachMs === undefined ? 0 : Math.min(0.95, (elapsedMs - eachMs * done) / eachMs);
    const filled = Math.floor(((done + within) / total) * WIDTH);
    const left = eachMs === undefined ? '?' : clock(Math.max(0, eachMs * total - elapsedMs));
    return `[${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${clock(elapsedMs)}, ${left} left  `;
  }
}

/** `1:05`. */
function clock(durationMs: number): string {
  const seconds = Math.round(durationMs / SECOND_MS);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
