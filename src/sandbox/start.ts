/** Starts the sandbox modules in a thread of their own, so that their work never holds up the gateway's. */

import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';

export const SANDBOX_MODULES = ['wallet', 'chat', 'markets', 'payments', 'core', 'contacts'] as const;
export type SandboxModuleName = (typeof SANDBOX_MODULES)[number];

export interface SandboxOptions {
  /** The gateway's `DataPath`; the sandbox keeps `sandbox/` in it. */
  readonly dataPath: string;
  /** Modules to serve; all unless given. */
  readonly modules?: readonly SandboxModuleName[];
  /** Port on loopback; a free one unless given. */
  readonly port?: number;
}

export interface RunningSandbox {
  readonly url: string;
  /** Address of each served module, for `Modules.<name>.url`. */
  readonly modules: Readonly<Partial<Record<SandboxModuleName, string>>>;
  /** `X-Module-Key` of all of them. */
  readonly moduleKey: string;
  /** The modules open what they keep for each user. Nothing waits for it; the first call of the user would do it too. */
  signedUp(userId: string): void;
  /** Resolves with the reason when the thread ends by itself: its modules are down from then on. */
  readonly crashed: Promise<Error>;
  /** Ends open connections, waits for what was accepted to be on the disk, ends the thread. */
  close(): Promise<void>;
}

/** The first message to the thread. */
export interface SandboxServing {
  readonly dataPath: string;
  readonly modules: readonly string[];
  /** 0: a free one. */
  readonly port: number;
}

/** Messages to the thread: serve; close; or a user who signed up at the gateway. */
export type SandboxOrder = SandboxServing | 'close' | { readonly signedUp: string };

/** The one message of the thread. */
export interface SandboxListening {
  readonly url: string;
}

/** A thread that loads the modules, and serves nothing yet. The process does not wait for it. */
export interface SandboxThread {
  readonly worker: Worker;
  readonly exited: Promise<void>;
  /** Resolves with the reason of the end, also after an order to close. */
  readonly ended: Promise<Error>;
}

export function createSandboxThread(): SandboxThread {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { name: 'sandbox' });
  worker.unref();
  const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  const ended = new Promise<Error>((resolve) => {
    worker.once('error', resolve);
    worker.once('exit', (code) => resolve(new Error(`the sandbox thread ended with code ${code}`)));
  });
  return { worker, exited, ended };
}

/** Resolves when the modules listen; rejects when the thread cannot start (a damaged log, no permission). */
export async function startSandbox(options: SandboxOptions, thread?: SandboxThread): Promise<RunningSandbox> {
  const modules = options.modules ?? SANDBOX_MODULES;
  const moduleKey = openModuleKey(options.dataPath);
  // After what may throw: nothing would end it.
  const { worker, exited, ended } = thread ?? createSandboxThread();
  worker.ref();
  let closing = false;
  const crashed = new Promise<Error>((resolve) => {
    void ended.then((error) => {
      if (!closing) resolve(error);
    });
  });
  const tell = (order: SandboxOrder) => worker.postMessage(order);
  tell({ dataPath: options.dataPath, modules, port: options.port ?? 0 });
  const signedUp = (userId: string) => tell({ signedUp: userId });
  const close = (): Promise<void> => {
    if (!closing) tell('close');
    closing = true;
    return exited;
  };
  return new Promise((resolve, reject) => {
    void crashed.then(reject);
    worker.once('message', ({ url }: SandboxListening) => {
      const addresses = Object.fromEntries(modules.map((name) => [name, `${url}/at/${name}`]));
      resolve({ url, modules: addresses, moduleKey, signedUp, crashed, close });
    });
  });
}

const KEY_BYTES = 32;

/** The key in `<DataPath>/sandbox/module-key`, made where it is missing. */
function openModuleKey(dataPath: string): string {
  const folder = join(dataPath, 'sandbox');
  const path = join(folder, 'module-key');
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Written under another name first: a crash must not leave an empty key, which would admit all callers.
    const fresh = `${path}.new`;
    writeFileSync(fresh, randomBytes(KEY_BYTES).toString('base64url'), { mode: 0o600, flush: true });
    renameSync(fresh, path);
  }
  return readFileSync(path, 'utf8').trim();
}
