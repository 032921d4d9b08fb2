/**
 * The process of a server by command. It is started without a shell, in a process group of its own that is ended as a whole;
 * its output is read no faster than its bounds allow.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { SECOND_MS } from '../../../../domain/time.ts';
import { ANSWER_MAX_BYTES } from '../../../http-client/attempt.ts';
import { endMarked, endProcess, MARK_VARIABLE } from './leftovers.ts';
import { DROPPED_BYTES_MAX, type Line, LineSplitter } from './lines.ts';

/** Wait after the end of its input, and after SIGTERM. */
const PATIENT_END_MS = SECOND_MS;
/** Output that was written before the exit is read so long. */
const LAST_OUTPUT_MS = 500;
/** Messages that wait for a process that does not read its input. */
const UNREAD_INPUT_BYTES_MAX = 2 * ANSWER_MAX_BYTES;
/** Bytes of standard error in a second; then it is read no further until the next one. */
const ERROR_BYTES_PER_SECOND_MAX = 1024 * 1024;

export interface ServerCommand {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Mark of this process and those that it starts. */
  readonly mark: string;
}

interface ProcessListener {
  /** Returns false when the next line must wait for the next second. */
  onLine(line: Line): boolean;
  onErrorOutput(bytes: Buffer): void;
  /** Once, also when it could not be started. No process of its group is left. */
  onExit(reason: string): void;
}

type Timer = (delayMs: number, run: () => void) => () => void;

/** Groups that are running: a crash of the gateway ends them too. */
const groups = new Set<number>();
let endsWithGateway = false;

export class ServerProcess {
  readonly #child: ChildProcess;
  readonly #mark: string;
  readonly #listener: ProcessListener;
  readonly #timer: Timer;
  readonly #lines = new LineSplitter();
  readonly #stopTimers = new Set<() => void>();
  readonly #ended: Promise<void>;
  #resolveEnded: () => void = () => {};
  #reason: string | undefined;
  /** Those that left the group. */
  #othersEnded: Promise<void> = Promise.resolve();
  #isPaused = false;
  #errorBytes = 0;
  #isEnding = false;
  #isGone = false;

  /** A program that cannot be started is reported as an exit. */
  constructor(
    { command: [program = '', ...args], environment, mark }: ServerCommand,
    listener: ProcessListener,
    timer: Timer,
  ) {
    this.#listener = listener;
    this.#timer = timer;
    this.#mark = mark;
    this.#ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const child = spawn(program, args, {
      detached: true,
      env: { ...environment, [MARK_VARIABLE]: mark },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child = child;
    if (child.pid !== undefined) remember(child.pid);
    child.once('error', (error) => this.#exited(error.message));
    child.once('exit', (code, signal) =>
      this.#exited(code === null ? `was ended by ${signal}` : `exited with ${code}`),
    );
    child.once('close', () => this.#finish());
    // A pipe whose other end is gone; the exit says more.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on('error', noEffect);
    child.stdout?.on('data', (bytes: Buffer) => {
      this.#lines.add(bytes);
      this.#readLines();
    });
    child.stderr?.on('data', (bytes: Buffer) => this.#readErrors(bytes));
  }

  /** Writes one message. False: it has ended, or does not read what it has got. */
  write(line: string): boolean {
    const { stdin } = this.#child;
    if (stdin === null || this.#isEnding || this.#reason !== undefined) return false;
    if (stdin.writableLength > UNREAD_INPUT_BYTES_MAX) return false;
    stdin.write(`${line}\n`);
    return true;
  }

  /** Ends its input, then the process group by SIGTERM, then by SIGKILL. Resolves when no process is left. */
  end(): Promise<void> {
    if (this.#isEnding || this.#reason !== undefined) return this.#ended;
    this.#isEnding = true;
    this.#child.stdin?.end();
    this.#after(PATIENT_END_MS, () => {
      this.#signal('SIGTERM');
      this.#after(PATIENT_END_MS, () => this.#signal('SIGKILL'));
    });
    this.#resume();
    return this.#ended;
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid !== undefined && groups.has(pid)) endProcess(-pid, signal);
  }

  /** The group is ended; what is still in the pipe is read. */
  #exited(reason: string): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    for (const stop of this.#stopTimers) stop();
    this.#stopTimers.clear();
    this.#signal('SIGKILL');
    this.#othersEnded = endMarked(`${this.#mark}\0`);
    this.#resume();
    if (this.#child.pid === undefined) this.#finish();
    else this.#after(LAST_OUTPUT_MS, () => this.#finish());
  }

  /** All that was written is read, or a process that cannot be ended holds the pipes. */
  #finish(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    for (const stop of this.#stopTimers) stop();
    this.#stopTimers.clear();
    const { pid, stdin, stdout, stderr } = this.#child;
    if (pid !== undefined) groups.delete(pid);
    for (const stream of [stdin, stdout, stderr]) stream?.destroy();
    void this.#othersEnded.then(() => {
      this.#listener.onExit(this.#reason ?? 'ended');
      this.#resolveEnded();
    });
  }

  #readLines(): void {
    while (!this.#isPaused && !this.#isGone) {
      const line = this.#lines.next();
      if (line === undefined) break;
      // Lines after the exit are the rest: at most a pipe full.
      if (!this.#listener.onLine(line) && this.#reason === undefined) this.#pause();
    }
    if (this.#lines.begunBytes > DROPPED_BYTES_MAX) this.#exited('wrote a line of more than 64 MiB');
  }

  #pause(): void {
    this.#isPaused = true;
    this.#child.stdout?.pause();
    this.#after(SECOND_MS, () => this.#resume());
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#readLines();
    if (!this.#isPaused) this.#child.stdout?.resume();
  }

  #readErrors(bytes: Buffer): void {
    this.#listener.onErrorOutput(bytes);
    if (this.#errorBytes === 0)
      this.#after(SECOND_MS, () => {
        this.#errorBytes = 0;
        this.#child.stderr?.resume();
      });
    this.#errorBytes += bytes.length;
    if (this.#errorBytes > ERROR_BYTES_PER_SECOND_MAX) this.#child.stderr?.pause();
  }

  #after(delayMs: number, run: () => void): void {
    const stop = this.#timer(delayMs, () => {
      this.#stopTimers.delete(stop);
      run();
    });
    this.#stopTimers.add(stop);
  }
}

function remember(group: number): void {
  groups.add(group);
  if (endsWithGateway) return;
  endsWithGateway = true;
  process.once('exit', () => {
    for (const each of groups) endProcess(-each);
  });
}

function noEffect(): void {
  // The exit of the process is reported.
}
