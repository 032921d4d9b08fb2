/** Previews that publishing read, until the message of the file is completed: the file need not be opened for them. */

import type { FileKey } from '../../../domain/files/files.ts';
import { keepNewest } from '../../../domain/limits/newest.ts';
import type { FilePreview } from './port.ts';

/**
 * Previews that are kept, of at most 96 KiB each. One is taken some turns after its publish; the oldest leaves first.
 */
const PREVIEWS_MAX = 32;

export class Previews {
  readonly #known = new Map<string, FilePreview>();

  put({ fileId }: FileKey, preview: FilePreview): void {
    keepNewest(this.#known, PREVIEWS_MAX, fileId, preview);
  }

  take({ fileId }: FileKey): FilePreview | undefined {
    const preview = this.#known.get(fileId);
    this.#known.delete(fileId);
    return preview;
  }
}
