/** The address books of the sandbox: one for each user, rebuilt from records. */
import { applying, committing } from '../record-log.ts';

export const CARDS_MAX = 1_000;

/** The fields of each record. */
interface ContactsRows {
  readonly cardPut: {
    readonly userId: string;
    readonly name: string;
    readonly text: string;
  };
  readonly cardRemoved: {
    readonly userId: string;
    readonly name: string;
  };
}

export const commitContacts = committing<ContactsRows>('contacts');

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

  readonly apply = applying<ContactsRows>({
    cardPut: ({ userId, name, text, tick }) =>
      void this.#changed(userId, tick).cards.set(name, { text, etag: etagOf(tick) }),
    cardRemoved: ({ userId, name, tick }) => void this.#changed(userId, tick).cards.delete(name),
  });

  #changed(userId: string, tick: string): Book {
    const book = this.#books.get(userId) ?? { cards: new Map(), changed: '0' };
    this.#books.set(userId, book);
    book.changed = tick;
    return book;
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
