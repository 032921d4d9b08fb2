/** Lists of a bucket, page by page: of its objects, and of transfers of parts that were begun and not ended. */
import { type BucketClient, BucketRefusal } from './client.ts';
import { elementsOf, textOf } from './xml.ts';

const LIST_ROWS = '200';
const LIST_PAGES_MAX = 100;

type Query = Readonly<Record<string, string>>;

interface Listed {
  readonly query: Query;
  /** Name of the element of a row. */
  readonly row: string;
  /** A storage that does not have this list (501) has an empty one. */
  readonly isOptional?: true;
  /** Leads to the page after this one. */
  next(text: string): Query | undefined;
}

export const OBJECTS: Listed = {
  query: { 'list-type': '2', 'max-keys': LIST_ROWS },
  row: 'Contents',
  next(text) {
    const token = textOf(text, 'NextContinuationToken');
    return token === undefined ? undefined : { 'continuation-token': token };
  },
};

export const TRANSFERS: Listed = {
  query: { uploads: '', 'max-uploads': LIST_ROWS },
  row: 'Upload',
  isOptional: true,
  next(text) {
    const key = textOf(text, 'NextKeyMarker');
    if (key === undefined || key === '') return undefined;
    return { 'key-marker': key, 'upload-id-marker': textOf(text, 'NextUploadIdMarker') ?? '' };
  },
};

/** A list that is read in several calls, of at most 20,000 rows each. */
export class BucketList {
  readonly #client: BucketClient;
  readonly #listed: Listed;
  readonly #prefix: string;
  #next: Query | undefined;

  constructor(client: BucketClient, listed: Listed, prefix: string) {
    this.#client = client;
    this.#listed = listed;
    this.#prefix = prefix;
  }

  /** The last call did not come to the end: the next one continues there. */
  get hasMore(): boolean {
    return this.#next !== undefined;
  }

  /** A page is asked for once the rows of the one before are taken. A refused one ends the list: the next call begins anew. */
  async *rows(): AsyncGenerator<string> {
    for (let page = 0; page < LIST_PAGES_MAX; page += 1) {
      const text = await this.#page();
      yield* elementsOf(text, this.#listed.row);
      this.#next = textOf(text, 'IsTruncated') === 'true' ? this.#listed.next(text) : undefined;
      if (this.#next === undefined) return;
    }
  }

  async #page(): Promise<string> {
    const query = { ...this.#listed.query, prefix: this.#prefix, ...this.#next };
    try {
      const answer = await this.#client.ask({ method: 'GET', path: '/', query });
      if (answer.status === 501 && this.#listed.isOptional === true) return '';
      if (answer.status !== 200) throw this.#client.refusal('GET', answer);
      return answer.text;
    } catch (error) {
      if (error instanceof BucketRefusal) this.#next = undefined;
      throw error;
    }
  }
}
