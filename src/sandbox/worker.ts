/** The sandbox's thread: opens the log, serves, and stops on request. A fatal error ends the thread. */
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { serveSandbox } from './server.ts';
import { SandboxStore } from './store.ts';

export interface SandboxWorkerData {
  readonly dataPath: string;
  readonly modules: readonly string[];
  /** 0: a free one. */
  readonly port: number;
}

/** Messages to the thread: close, or a user who signed up at the gateway. */
export type SandboxNotice = 'close' | { readonly signedUp: string };

/** The one message of the thread. */
export interface SandboxListening {
  readonly url: string;
}

async function run(data: SandboxWorkerData): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('the sandbox runs in a worker thread');
  const store = await SandboxStore.open(join(data.dataPath, 'sandbox', 'log.jsonl'), Date.now);
  const server = await serveSandbox(store, data, endThread);
  port.on('message', (notice: SandboxNotice) => {
    if (notice !== 'close') {
      store.signedUp(notice.signedUp, data.modules).catch(endThread);
      return;
    }
    server
      .close()
      .then(() => store.close())
      .then(() => port.close(), endThread);
  });
  port.postMessage({ url: server.url } satisfies SandboxListening);
}

/** Throws outside of any promise, which ends the thread and reaches `RunningSandbox.crashed`. */
function endThread(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}

await run(workerData as SandboxWorkerData);
