/**
 * Faults on demand: `POST {sandbox}/sandbox/v1/fault {module, mode, delayMs?}` makes one module fail until the mode is
 * "ok" again. Volatile: a restart heals everything.
 */
import { SandboxError } from './errors.ts';

/**
 * - `down`: the connection is broken before anything happens.
 * - `slow`: the call is done, its answer is held back for `delayMs`.
 * - `error`: 500 with an error envelope, nothing is done.
 * - `cut`: the call is done, the answer breaks off in the middle.
 */
export const FAULT_MODES = ['down', 'slow', 'error', 'cut', 'ok'] as const;
type FaultMode = (typeof FAULT_MODES)[number];

/** Longer than the gateway's usual time-out of 30 s. */
const SLOW_DELAY_MS = 35_000;
const SLOW_DELAY_MAX_MS = 120_000;

interface FaultSetting {
  readonly mode: FaultMode;
  readonly delayMs: number;
}

const HEALTHY: FaultSetting = { mode: 'ok', delayMs: 0 };

export class Faults {
  readonly #byModule = new Map<string, FaultSetting>();

  of(module: string | undefined): FaultSetting {
    return (module === undefined ? undefined : this.#byModule.get(module)) ?? HEALTHY;
  }

  /** Sets the fault that the body describes; refuses unknown modules, modes and delays. */
  set(body: Readonly<Record<string, unknown>>, modules: readonly string[]): object {
    const { module, mode: wanted, delayMs = SLOW_DELAY_MS } = body;
    const mode = FAULT_MODES.find((candidate) => candidate === wanted);
    if (typeof module !== 'string' || !modules.includes(module))
      throw new SandboxError('BadRequest', `module is one of ${modules.join(', ')}`);
    if (mode === undefined) throw new SandboxError('BadRequest', `mode is one of ${FAULT_MODES.join(', ')}`);
    if (
      typeof delayMs !== 'number' ||
      !Number.isInteger(delayMs) ||
      delayMs < 0 ||
      delayMs > SLOW_DELAY_MAX_MS
    )
      throw new SandboxError('BadRequest', `delayMs is a whole number up to ${SLOW_DELAY_MAX_MS}`);
    this.#byModule.set(module, { mode, delayMs });
    return { module, mode };
  }
}
