/** Previews that publishing read, until the message of the file is completed: the file need not be opened for them. */
import type { FileKey } from '../../../domain/files/files.ts';
import type { FilePreview } from './port.ts';

/**
 * Previews that are kept, of at most 96 KiB each. One is taken some turns after its publish; the oldest leaves first.
 */
const PREVIEWS_MAX = 32;

export class Previews {
  readonly #known = new Map<string, FilePreview>();

  put({ fileId }: FileKey, preview: FilePreview): void {
    this.#known.set(fileId, preview);
    if (this.#known.size <= PREVIEWS_MAX) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }

  take({ fileId }: FileKey): FilePreview | undefined {
    const preview = this.#known.get(fileId);
    this.#known.delete(fileId);
    return preview;
  }
}
