/** Texts of files for `chat_read_text_file`: the newest of all chats together, so that uploads do not add up in memory. */

/** A thousand files of 8 KiB; of older ones name, size and checksum stay. */
const CHARACTERS_MAX = 8 * 1024 * 1024;

export class KeptTexts {
  readonly #charactersMax: number;
  /** Texts by file id, oldest first. */
  readonly #texts = new Map<string, string>();
  #characters = 0;

  constructor(charactersMax = CHARACTERS_MAX) {
    this.#charactersMax = charactersMax;
  }

  get characters(): number {
    return this.#characters;
  }

  get(fileId: string): string | undefined {
    return this.#texts.get(fileId);
  }

  /** Older ones are dropped. */
  keep(fileId: string, text: string): void {
    this.forget(fileId);
    this.#texts.set(fileId, text);
    this.#characters += text.length;
    for (const oldest of this.#texts.keys()) {
      if (this.#characters <= this.#charactersMax) return;
      this.forget(oldest);
    }
  }

  /** The file is gone, or never had a text. */
  forget(fileId: string): void {
    this.#characters -= this.#texts.get(fileId)?.length ?? 0;
    this.#texts.delete(fileId);
  }
}
