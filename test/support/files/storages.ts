/** Storages that end with their test, in a folder that goes with it, and what they log of failures. */
import type { Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { LocalStorage } from '../../../src/io/files/storage/local.ts';
import { RemoteStorage } from '../../../src/io/files/storage/remote.ts';
import { inlineWorkers } from '../account.ts';
import { temporaryFolder } from './file-storage.ts';

type LocalOptions = ConstructorParameters<typeof LocalStorage>[0];
type RemoteOptions = ConstructorParameters<typeof RemoteStorage>[0];

export function localStorage(t: Test, given: Partial<LocalOptions> = {}) {
  const faults: string[] = [];
  const root = given.root ?? temporaryFolder(t);
  const { workers } = inlineWorkers();
  const options = { workers, root, onFault: (message: string) => faults.push(message), ...given };
  return { storage: closeAfter(t, new LocalStorage(options)), root, faults };
}

export function remoteStorage(
  t: Test,
  given: Pick<RemoteOptions, 'servers'> & Partial<Omit<RemoteOptions, 'servers'>>,
) {
  const faults: string[] = [];
  const staging = given.staging ?? temporaryFolder(t);
  const { workers } = inlineWorkers();
  const options = { workers, staging, onFault: (message: string) => faults.push(message), ...given };
  return { storage: closeAfter(t, new RemoteStorage(options)), staging, faults };
}
