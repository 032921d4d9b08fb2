/**
 * Access to names in a folder without following symbolic links, as `openat` does: through the descriptor of the folder, on
 * Linux by /proc/self/fd/N/name, elsewhere by the path of the checked folder.
 */
import { constants, existsSync } from 'node:fs';
import { join } from 'node:path';

/** Opens a folder, and no link to one. */
export const FOLDER_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const DESCRIPTOR_PATHS = process.platform === 'linux' && existsSync('/proc/self/fd');

/** Path of a name in a folder, valid while the folder is open as `fd`. */
export function pathInFolder(fd: number, folderPath: string, name: string): string {
  return join(DESCRIPTOR_PATHS ? `/proc/self/fd/${fd}` : folderPath, name);
}
