/** The sandbox's thread: opens the log, serves, and stops, each on request. A fatal error ends the thread. */
import { join } from 'node:path';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { serveSandbox } from './server.ts';
import type { SandboxListening, SandboxOrder, SandboxServing } from './start.ts';
import { SandboxStore } from './store.ts';

async function serve(port: MessagePort, serving: SandboxServing): Promise<void> {
  const store = await SandboxStore.open(join(serving.dataPath, 'sandbox', 'log.jsonl'), Date.now);
  const server = await serveSandbox(store, serving, endThread);
  port.on('message', (order: Exclude<SandboxOrder, SandboxServing>) => {
    if (order !== 'close') {
      store.signedUp(order.signedUp, serving.modules).catch(endThread);
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

const port = parentPort;
if (port === null) throw new Error('the sandbox runs in a worker thread');
port.once('message', (serving: SandboxServing) => void serve(port, serving).catch(endThread));
