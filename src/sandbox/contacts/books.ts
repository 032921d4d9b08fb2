/** The address books of the sandbox: one for each user, rebuilt from records. */
import type { SandboxRecord } from '../record-log.ts';

export const CARDS_MAX = 1_000;

export interface CardPut extends SandboxRecord {
  readonly type: 'cardPut';
  readonly userId: string;
  readonly name: string;
  readonly text: string;
}

export interface CardRemoved extends SandboxRecord {
  readonly type: 'cardRemoved';
  readonly userId: string;
  readonly name: string;
}

export interface Card {
  /** vCard. */
  readonly text: string;
  /** Tag with quotation marks. */
  readonly etag: string;
}

interface Book {
  readonly cards: Map<string, Card>;
  /** Tick of the last change. */
  changed: string;
}

const NO_CARDS: ReadonlyMap<string, Card> = new Map();

export class Books {
  readonly #books = new Map<string, Book>();

  apply(record: CardPut | CardRemoved): void {
    const book = this.#books.get(record.userId) ?? { cards: new Map(), changed: '0' };
    this.#books.set(record.userId, book);
    book.changed = record.tick;
    if (record.type === 'cardRemoved') book.cards.delete(record.name);
    else book.cards.set(record.name, { text: record.text, etag: etagOf(record.tick) });
  }

  cardsOf(userId: string): ReadonlyMap<string, Card> {
    return this.#books.get(userId)?.cards ?? NO_CARDS;
  }

  changedOf(userId: string): string {
    return this.#books.get(userId)?.changed ?? '0';
  }
}

export function etagOf(tick: string): string {
  return `"${tick}"`;
}
