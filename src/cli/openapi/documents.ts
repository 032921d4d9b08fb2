/**
 * An OpenAPI document and the documents that its references name. A document of the disk reaches files of its own folder, one
 * of the web its own origin: nothing else is read.
 */
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { UsageError } from '../../config/load.ts';
import { isObject } from '../../io/mcp/input-schema.ts';

const DOCUMENTS_MAX = 256;
/** Bytes of all documents together. */
const BYTES_MAX = 64 * 1024 * 1024;
const FETCH_MS = 30_000;
const REDIRECTS_MAX = 5;
/** References that name references. */
const CHAIN_MAX = 32;
const IS_WEB = /^https?:\/\//i;

/** The reason why a reference names nothing: the operation or schema that needs it is left out. */
export class ReferenceFault extends Error {}

/** A value, and the document in which its references are read. */
export interface Located {
  readonly value: unknown;
  readonly document: string;
}

export interface Documents {
  readonly root: Located;
  /** Returns the value once its references are followed. Throws `ReferenceFault`. */
  follow(located: Located): Located;
  /** The address of what a reference names; the same for all references to it. Throws `ReferenceFault`. */
  addressOf(reference: string, document: string): string;
}

/** Throws `UsageError` when the document itself cannot be read. */
export async function openDocuments(source: string): Promise<Documents> {
  const reader = new DocumentReader(source);
  const root = await reader.readRoot();
  const faults = new Map<string, string>();
  const values = new Map<string, unknown>([[root.document, root.value]]);
  const waiting = [root];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
    for (const reference of referencesIn(next.value)) {
      const document = documentOf(reference, next.document);
      if (document === undefined || values.has(document) || faults.has(document)) continue;
      try {
        const read = await reader.read(document);
        values.set(document, read);
        waiting.push({ value: read, document });
      } catch (error) {
        // Only what needs it is left out.
        faults.set(document, error instanceof Error ? error.message : String(error));
      }
    }
  return new ReadDocuments(root, values, faults);
}

class ReadDocuments implements Documents {
  readonly root: Located;
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #faults: ReadonlyMap<string, string>;

  constructor(root: Located, values: ReadonlyMap<string, unknown>, faults: ReadonlyMap<string, string>) {
    this.root = root;
    this.#values = values;
    this.#faults = faults;
  }

  follow(located: Located): Located {
    let { value, document } = located;
    for (let steps = 0; isObject(value) && typeof value['$ref'] === 'string'; steps += 1) {
      if (steps === CHAIN_MAX) throw new ReferenceFault(`${value['$ref']} is a reference without end`);
      const address = this.addressOf(value['$ref'], document);
      ({ value, document } = this.#at(address));
    }
    return { value, document };
  }

  addressOf(reference: string, document: string): string {
    const target = documentOf(reference, document);
    if (target === undefined) throw new ReferenceFault(`${reference} is no address`);
    const hash = reference.indexOf('#');
    return `${target}#${hash < 0 ? '' : reference.slice(hash + 1)}`;
  }

  #at(address: string): Located {
    const hash = address.indexOf('#');
    const document = address.slice(0, hash);
    const pointer = address.slice(hash + 1);
    const fault = this.#faults.get(document);
    if (fault !== undefined) throw new ReferenceFault(fault);
    let value = this.#values.get(document);
    for (const step of pointer.split('/').slice(1)) {
      const name = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
      const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
      if (!isThere) throw new ReferenceFault(`#${pointer} is not in the document`);
      value = (value as Record<string, unknown>)[name];
    }
    return { value, document };
  }
}

class DocumentReader {
  readonly #source: string;
  #folder: string | undefined;
  #origin: string | undefined;
  #leftBytes = BYTES_MAX;
  #documents = 0;

  constructor(source: string) {
    this.#source = source;
  }

  async readRoot(): Promise<Located> {
    try {
      if (IS_WEB.test(this.#source)) {
        const { text, url } = await this.#fetched(new URL(this.#source));
        return { value: await this.#parsed(text, url.href), document: url.href };
      }
      const path = realpathSync(resolve(this.#source));
      this.#folder = dirname(path);
      const document = pathToFileURL(path).href;
      return { value: await this.#parsed(readFileSync(path), document), document };
    } catch (error) {
      throw new UsageError(`cannot read ${this.#source}: ${reasonOf(error)}`);
    }
  }

  async read(document: string): Promise<unknown> {
    if (IS_WEB.test(document)) {
      const url = new URL(document);
      if (url.origin !== this.#origin) throw new ReferenceFault(`${document} is of another origin`);
      return this.#parsed((await this.#fetched(url)).text, document);
    }
    if (this.#folder === undefined || !document.startsWith('file:'))
      throw new ReferenceFault(`${document} is of another origin`);
    const path = realpathSync(fileURLToPath(document));
    const inside = this.#folder.endsWith(sep) ? this.#folder : this.#folder + sep;
    if (!path.startsWith(inside)) throw new ReferenceFault(`${path} is outside the folder of the document`);
    return this.#parsed(readFileSync(path), document);
  }

  /** Redirects lead to the same origin only. */
  async #fetched(first: URL): Promise<{ text: Buffer; url: URL }> {
    let url = first;
    this.#origin ??= url.origin;
    for (let hops = 0; hops <= REDIRECTS_MAX; hops += 1) {
      const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(FETCH_MS) });
      const location = response.headers.get('location');
      if (response.status >= 300 && response.status < 400 && location !== null) {
        await response.body?.cancel();
        url = new URL(location, url);
        if (url.origin !== this.#origin) throw new ReferenceFault(`redirects to ${url.origin}`);
        continue;
      }
      if (!response.ok) throw new ReferenceFault(`${url.href} answers with ${response.status}`);
      return { text: await this.#body(response), url };
    }
    throw new ReferenceFault(`${first.href} redirects without end`);
  }

  async #body(response: Response): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of response.body ?? []) {
      bytes += piece.length;
      if (bytes > this.#leftBytes) throw new ReferenceFault(TOO_LARGE);
      pieces.push(piece);
    }
    return Buffer.concat(pieces);
  }

  async #parsed(bytes: Buffer, document: string): Promise<unknown> {
    this.#documents += 1;
    this.#leftBytes -= bytes.length;
    if (this.#leftBytes < 0) throw new ReferenceFault(TOO_LARGE);
    if (this.#documents > DOCUMENTS_MAX) throw new ReferenceFault(`more than ${DOCUMENTS_MAX} documents`);
    const text = bytes.toString('utf8').replace(/^\ufeff/, '');
    if (/^\s*[{[]/.test(text)) {
      try {
        return JSON.parse(text);
      } catch (error) {
        // YAML may begin so too.
        if (!(error instanceof SyntaxError)) throw error;
      }
    }
    const { parse } = await import('yaml');
    try {
      return parse(text, { merge: true });
    } catch (error) {
      throw new ReferenceFault(`${document} is neither JSON nor YAML: ${reasonOf(error)}`);
    }
  }
}

const TOO_LARGE = `more than ${BYTES_MAX / 1024 / 1024} MiB of documents`;

/** All texts under `$ref`, at any depth. */
function referencesIn(value: unknown): string[] {
  const found: string[] = [];
  const waiting: unknown[] = [value];
  const seen = new Set<unknown>();
  for (let next = waiting.pop(); waiting.length > 0 || next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null || seen.has(next)) continue;
    // An alias of YAML is the same object.
    seen.add(next);
    for (const [key, item] of Object.entries(next)) {
      if (key === '$ref' && typeof item === 'string') found.push(item);
      else if (typeof item === 'object' && item !== null) waiting.push(item);
    }
  }
  return found;
}

/** The document of a reference, without a fragment; undefined for what is no address. */
function documentOf(reference: string, document: string): string | undefined {
  const [path = ''] = reference.split('#');
  if (path === '') return document;
  return URL.canParse(path, document) ? new URL(path, document).href : undefined;
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch (error) {
    if (error instanceof URIError) return step;
    throw error;
  }
}

/** Returns one line about the innermost cause, which says more. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  const named = cause instanceof Error && cause.message !== '' ? cause : error;
  return (named instanceof Error ? named.message : String(named)).split('\n')[0] ?? '';
}
