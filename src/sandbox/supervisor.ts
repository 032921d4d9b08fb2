/**
 * Keeps the sandbox modules running. A thread that ended is restarted on the same port, with growing delays while it
 * fails. A full disk ends it, so that no unwritten result is answered.
 */
import { MINUTE_MS, SECOND_MS } from '../domain/time.ts';
import { type RunningSandbox, type SandboxOptions, type SandboxThread, startSandbox } from './start.ts';

const FIRST_WAIT_MS = SECOND_MS;
const WAIT_MAX_MS = MINUTE_MS;
/** A sandbox that stayed for so long begins with the shortest wait again. */
const STAYED_MS = MINUTE_MS;

interface SandboxSupervisorOptions {
  /** `startSandbox` unless given. */
  readonly start?: (options: SandboxOptions, thread?: SandboxThread) => Promise<RunningSandbox>;
  /** The first start takes it; later ones create theirs. */
  readonly thread?: SandboxThread | undefined;
  /** Milliseconds, monotonic. */
  readonly elapsed: () => number;
  /** Runs once after `delayMs`; what it returns cancels it. */
  readonly timer: (delayMs: number, run: () => void) => () => void;
  /** The modules are down; they are tried again after `waitMs`. */
  readonly onEnd: (error: unknown, waitMs: number) => void;
  /** The modules serve again. */
  readonly onReturn: () => void;
}

/** A running sandbox that is started again after a crash. */
export type SupervisedSandbox = Omit<RunningSandbox, 'crashed'>;

/** Resolves when the modules listen; rejects when the first start fails. */
export async function superviseSandbox(
  options: SandboxOptions,
  supervision: SandboxSupervisorOptions,
): Promise<SupervisedSandbox> {
  const { start = startSandbox, thread } = supervision;
  const supervisor = new Supervisor(options, await start(options, thread), supervision);
  const { url, modules, moduleKey } = supervisor.first;
  return {
    url,
    modules,
    moduleKey,
    signedUp: (userId) => supervisor.signedUp(userId),
    close: () => supervisor.close(),
  };
}

class Supervisor {
  readonly first: RunningSandbox;
  readonly #options: SandboxOptions;
  readonly #supervision: SandboxSupervisorOptions;
  #current: RunningSandbox | undefined;
  #starting: Promise<void> = Promise.resolve();
  #startedMs = 0;
  #waitMs = FIRST_WAIT_MS;
  #cancel: () => void = () => undefined;
  #closed = false;

  constructor(options: SandboxOptions, first: RunningSandbox, supervision: SandboxSupervisorOptions) {
    this.first = first;
    this.#options = { ...options, port: Number(new URL(first.url).port) };
    this.#supervision = supervision;
    this.#watch(first);
  }

  /** Dropped while the modules are down: the first call of the user opens the accounts too. */
  signedUp(userId: string): void {
    this.#current?.signedUp(userId);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#starting;
    await this.#current?.close();
  }

  #watch(sandbox: RunningSandbox): void {
    this.#current = sandbox;
    this.#startedMs = this.#supervision.elapsed();
    void sandbox.crashed.then((error) => this.#ended(error));
  }

  #ended(error: unknown): void {
    this.#current = undefined;
    if (this.#closed) return;
    const { elapsed, timer, onEnd } = this.#supervision;
    if (elapsed() - this.#startedMs >= STAYED_MS) this.#waitMs = FIRST_WAIT_MS;
    const waitMs = this.#waitMs;
    this.#waitMs = Math.min(2 * waitMs, WAIT_MAX_MS);
    onEnd(error, waitMs);
    this.#cancel = timer(waitMs, () => {
      this.#starting = this.#start();
    });
  }

  async #start(): Promise<void> {
    this.#startedMs = this.#supervision.elapsed();
    try {
      const { start = startSandbox, onReturn } = this.#supervision;
      this.#watch(await start(this.#options));
      onReturn();
    } catch (error) {
      this.#ended(error);
    }
  }
}
