/**
 * The sandbox contacts module: one address book a user over CardDAV (RFC 6352), with hrefs as the gateway's clients see
 * them. It answers all properties that it has, and no filter of a query.
 */
import { type DavAnswer, type DavCall, ownerOf } from '../dav.ts';
import { SandboxError } from '../errors.ts';
import { EventList } from '../events.ts';
import type { SandboxModule } from '../module.ts';
import { Books, CARDS_MAX, type Card, commitContacts, etagOf } from './books.ts';
import { type Described, escaped, href, hrefsOf, multiStatus, type Properties, rootName } from './xml.ts';

const ROOT = '/contacts/v1/';
const PRINCIPAL = `${ROOT}principal/`;
const HOME = `${ROOT}books/`;
const BOOK = `${HOME}contacts/`;
const CARD_NAME = /^[\w.~%@+=!$&'()*,-]{1,250}$/;
const VCARD = /^BEGIN:VCARD\r?\n.*\nEND:VCARD\s*$/is;
const COLLECTIONS = new Set([ROOT, PRINCIPAL, HOME, BOOK]);
const COLLECTION_METHODS = 'OPTIONS, PROPFIND, REPORT';
const CARD_METHODS = 'OPTIONS, GET, HEAD, PUT, DELETE, PROPFIND';
const DAV: readonly [string, string] = ['DAV', '1, 3, addressbook'];
const ALL_RIGHTS = '<D:privilege><D:all/></D:privilege>';

export function createContacts(): SandboxModule {
  const books = new Books();
  return {
    name: 'contacts',
    endpoints: [],
    events: new EventList('contacts'),
    apply: books.apply,
    dav: (call) => new Contacts(books, call).answer(),
  };
}

/** One request. */
class Contacts {
  readonly #books: Books;
  readonly #call: DavCall;
  readonly #userId: string;

  constructor(books: Books, call: DavCall) {
    this.#books = books;
    this.#call = call;
    this.#userId = ownerOf(call);
  }

  answer(): DavAnswer {
    const { method, path } = this.#call;
    const isCollection = COLLECTIONS.has(path);
    if (!isCollection && cardName(path) === undefined) throw new SandboxError('NotFound');
    const allowed = isCollection ? COLLECTION_METHODS : CARD_METHODS;
    if (!allowed.split(', ').includes(method)) throw new SandboxError('MethodNotAllowed');
    switch (method) {
      case 'OPTIONS':
        return { status: 204, body: '', headers: [DAV, ['Allow', allowed]] };
      case 'PROPFIND':
        return this.#propfind();
      case 'REPORT':
        return this.#report();
      case 'PUT':
        return this.#put();
      case 'DELETE':
        return this.#remove();
      default:
        return this.#get();
    }
  }

  get #cards(): ReadonlyMap<string, Card> {
    return this.#books.cardsOf(this.#userId);
  }

  #propfind(): DavAnswer {
    const { path, depth } = this.#call;
    if (depth === 'infinity') throw new SandboxError('Forbidden', 'Depth is 0 or 1');
    if (!COLLECTIONS.has(path)) {
      const card = this.#cards.get(cardName(path) ?? '');
      if (card === undefined) throw new SandboxError('NotFound');
      return answered([{ href: path, properties: propertiesOf(card) }]);
    }
    const found: Described[] = [this.#collection(path)];
    if (depth === '1' && path === HOME) found.push(this.#collection(BOOK));
    if (depth === '1' && path === BOOK)
      for (const [name, card] of this.#cards)
        found.push({ href: BOOK + name, properties: propertiesOf(card) });
    return answered(found);
  }

  #collection(path: string): Described {
    const shared = {
      'D:current-user-principal': href(PRINCIPAL),
      'D:owner': href(PRINCIPAL),
      'D:current-user-privilege-set': ALL_RIGHTS,
    };
    if (path === PRINCIPAL)
      return {
        href: path,
        properties: {
          ...shared,
          'D:resourcetype': '<D:collection/><D:principal/>',
          'D:displayname': escaped(this.#userId),
          'D:principal-URL': href(PRINCIPAL),
          'C:addressbook-home-set': href(HOME),
        },
      };
    if (path !== BOOK) return { href: path, properties: { ...shared, 'D:resourcetype': '<D:collection/>' } };
    return {
      href: path,
      properties: {
        ...shared,
        'D:resourcetype': '<D:collection/><C:addressbook/>',
        'D:displayname': 'Contacts',
        'D:supported-report-set': ['addressbook-multiget', 'addressbook-query']
          .map((name) => `<D:supported-report><D:report><C:${name}/></D:report></D:supported-report>`)
          .join(''),
        'C:supported-address-data': '<C:address-data-type content-type="text/vcard" version="3.0"/>',
        'S:getctag': etagOf(this.#books.changedOf(this.#userId)),
      },
    };
  }

  #report(): DavAnswer {
    const { path, body } = this.#call;
    if (path !== BOOK) throw new SandboxError('Forbidden', 'reports are of the address book');
    const kind = rootName(body);
    if (kind === 'addressbook-query')
      return answered(
        [...this.#cards].map(([name, card]) => ({ href: BOOK + name, properties: withText(card) })),
      );
    if (kind !== 'addressbook-multiget') throw new SandboxError('Forbidden', 'unknown report');
    return answered(
      hrefsOf(body).map((reference) => {
        const card = this.#cards.get(cardName(pathOf(reference)) ?? '');
        return { href: reference, properties: card && withText(card) };
      }),
    );
  }

  #get(): DavAnswer {
    const card = this.#cards.get(cardName(this.#call.path) ?? '');
    if (card === undefined) throw new SandboxError('NotFound');
    return {
      status: 200,
      body: card.text,
      contentType: 'text/vcard; charset=utf-8',
      headers: [['ETag', card.etag]],
    };
  }

  #put(): DavAnswer {
    const { path, body, ifMatch, ifNoneMatch } = this.#call;
    const name = cardName(path) ?? '';
    const present = this.#cards.get(name);
    if (ifNoneMatch === '*' && present !== undefined) throw new SandboxError('CardChanged');
    this.#requireMatch(present, ifMatch);
    if (!VCARD.test(body)) throw new SandboxError('BadRequest', 'no vCard');
    if (present === undefined && this.#cards.size >= CARDS_MAX) throw new SandboxError('TooManyCards');
    const tick = this.#call.tick();
    commitContacts(this.#call, 'cardPut', { tick, userId: this.#userId, name, text: body });
    return { status: present === undefined ? 201 : 204, body: '', headers: [['ETag', etagOf(tick)]] };
  }

  #remove(): DavAnswer {
    const name = cardName(this.#call.path) ?? '';
    const present = this.#cards.get(name);
    if (present === undefined) throw new SandboxError('NotFound');
    this.#requireMatch(present, this.#call.ifMatch);
    commitContacts(this.#call, 'cardRemoved', { tick: this.#call.tick(), userId: this.#userId, name });
    return { status: 204, body: '', headers: [] };
  }

  #requireMatch(present: Card | undefined, ifMatch: string | undefined): void {
    if (ifMatch === undefined || (ifMatch === '*' && present !== undefined)) return;
    if (ifMatch !== present?.etag) throw new SandboxError('CardChanged');
  }
}

/** Name of a card in the address book; undefined for another path. */
function cardName(path: string): string | undefined {
  const name = path.startsWith(BOOK) ? path.slice(BOOK.length) : '';
  return CARD_NAME.test(name) ? name : undefined;
}

/** A client may send the whole address (RFC 4918 8.3). */
function pathOf(reference: string): string {
  const base = 'http://sandbox';
  return URL.canParse(reference, base) ? new URL(reference, base).pathname : '';
}

function answered(resources: readonly Described[]): DavAnswer {
  return {
    status: 207,
    body: multiStatus(resources),
    contentType: 'application/xml; charset=utf-8',
    headers: [DAV],
  };
}

function propertiesOf({ text, etag }: Card): Properties {
  return {
    'D:resourcetype': '',
    'D:getetag': escaped(etag),
    'D:getcontenttype': 'text/vcard; charset=utf-8',
    'D:getcontentlength': String(Buffer.byteLength(text)),
  };
}

function withText(card: Card): Properties {
  return { ...propertiesOf(card), 'C:address-data': escaped(card.text) };
}
