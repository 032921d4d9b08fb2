/**
 * Error codes of the system for a disk that refuses: some mean that there is no room, others that the machine fails.
 */

/** No room, quota used up, file too large for the file system. */
const NO_ROOM: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
/** A device that fails, a file handle that a server has forgotten, no descriptors, no memory. */
const MACHINE: ReadonlySet<string> = new Set(['EIO', 'ESTALE', 'EMFILE', 'ENFILE', 'ENOMEM']);

/** `ENOENT` and its like, of an error or of what a worker thread reports; undefined for what is nothing of the kind. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Is there no room for what was to be written? It passes by itself, where a missing permission does not. */
export function isNoRoom(error: unknown): boolean {
  return NO_ROOM.has(systemCode(error) ?? '');
}

/** Does the machine fail, or is its disk full? No change of the configuration would help. */
export function isMachineFault(error: unknown): boolean {
  return isNoRoom(error) || MACHINE.has(systemCode(error) ?? '');
}
