/**
 * Client-id metadata documents: fetched from the address that is the client's id, through the SSRF guard of webhooks, without
 * redirects, within a deadline and a size, and cached.
 */

import { GatewayError } from '../../domain/errors.ts';
import type { Holder } from '../../domain/limits/holders.ts';
import { keepNewest } from '../../domain/limits/newest.ts';
import type { SharedBound } from '../../domain/limits/shares.ts';
import { CLIENT_NAME_MAX, judgeRedirect, type RedirectRules } from '../../domain/oauth/clients.ts';
import { MINUTE_MS, SECOND_MS } from '../../domain/time.ts';
import { judgeWebhookUrl, type WebhookRules } from '../../domain/webhooks/target.ts';
import { GuardedClient } from '../webhooks/guarded-client.ts';
import type { Resolve } from '../webhooks/ssrf-guard.ts';
import { shownName } from './client-name.ts';

const DEADLINE_MS = 3 * SECOND_MS;
const DOCUMENT_MAX_BYTES = 16 * 1024;
const CONNECTIONS_PER_ORIGIN = 2;
const ID_LENGTH_MAX = 1_024;
const CACHED_MAX = 500;
const CACHE_LEAST_MS = 5 * MINUTE_MS;
const CACHE_MOST_MS = 24 * 60 * MINUTE_MS;
const FAILURE_MS = MINUTE_MS;
const REDIRECTS_READ_MAX = 20;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

interface ClientDocument {
  readonly name: string;
  readonly redirectUris: readonly string[];
}

/** Result of a fetch: the document, or one sentence for the person. */
type Found = { readonly document: ClientDocument } | { readonly fault: string };
interface Cached {
  readonly found: Found;
  readonly endsMs: number;
}

export type DocumentClient = Pick<GuardedClient, 'request' | 'close'>;

export interface DocumentOptions {
  readonly rules: () => WebhookRules;
  readonly resolve: Resolve;
  readonly redirects: RedirectRules;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Fetches at once. */
  readonly bound: SharedBound;
  readonly client?: DocumentClient;
}

/** The host of a client id that is the address of a document; undefined for any other id. */
export function documentHost(clientId: string): string | undefined {
  if (!clientId.startsWith('https://') || clientId.length > ID_LENGTH_MAX) return undefined;
  if (!URL.canParse(clientId)) return undefined;
  const url = new URL(clientId);
  // One spelling for each client, with a path; a fragment or a user name has no place in an id.
  const isPlain = url.href === clientId && url.pathname !== '/' && url.hash === '';
  return isPlain && url.username === '' && url.password === '' ? url.host : undefined;
}

export class ClientDocuments {
  readonly #options: DocumentOptions;
  readonly #cached = new Map<string, Cached>();
  readonly #running = new Map<string, Promise<Found>>();
  readonly #client: DocumentClient;

  constructor(options: DocumentOptions) {
    this.#options = options;
    this.#client = options.client ?? new GuardedClient({ ...options, connections: CONNECTIONS_PER_ORIGIN });
  }

  /** Fetches for an account that is logged in, its holder. Throws `OAuthInvalidClient`, `AccessRateLimit`. */
  async find(clientId: string, holder: Holder): Promise<ClientDocument> {
    const found = this.#current(clientId) ?? (await this.#shared(clientId, holder));
    if ('fault' in found) throw new GatewayError('OAuthInvalidClient', found.fault);
    return found.document;
  }

  close(): void {
    this.#client.close();
  }

  #current(clientId: string): Found | undefined {
    const cached = this.#cached.get(clientId);
    return cached !== undefined && this.#options.elapsed() < cached.endsMs ? cached.found : undefined;
  }

  #shared(clientId: string, holder: Holder): Promise<Found> {
    const running = this.#running.get(clientId);
    if (running !== undefined) return running;
    const lease = this.#options.bound.require(holder);
    const fetched = this.#fetch(clientId).finally(() => {
      this.#running.delete(clientId);
      lease.release();
    });
    this.#running.set(clientId, fetched);
    return fetched;
  }

  async #fetch(clientId: string): Promise<Found> {
    const { found, lifeMs } = await this.#ask(clientId);
    keepNewest(this.#cached, CACHED_MAX, clientId, { found, endsMs: this.#options.elapsed() + lifeMs });
    return found;
  }

  async #ask(clientId: string): Promise<{ found: Found; lifeMs: number }> {
    const failed = (fault: string) => ({ found: { fault }, lifeMs: FAILURE_MS });
    const decision = judgeWebhookUrl(clientId, this.#options.rules());
    if (!decision.ok) return failed('the address of the metadata document is not allowed');
    const answer = await this.#client.request({
      method: 'GET',
      url: decision.url,
      headers: { accept: 'application/json' },
      answerMaxBytes: DOCUMENT_MAX_BYTES,
      signal: AbortSignal.timeout(DEADLINE_MS),
    });
    // Neither the address nor the reason: they may tell what a name resolves to.
    if (answer.kind !== 'answered') return failed('the metadata document could not be read');
    const { status, headers, bytes, isCut } = answer;
    if (status !== 200) return failed(`the metadata document answered with status ${status}`);
    if (!JSON_TYPE.test(String(headers['content-type'] ?? '')))
      return failed('the metadata document is not JSON');
    if (isCut) return failed('the metadata document is too large');
    const found = readDocument(clientId, bytes.toString('utf8'), this.#options.redirects);
    const lifeMs = 'fault' in found ? FAILURE_MS : cacheLifeMs(String(headers['cache-control'] ?? ''));
    return { found, lifeMs };
  }
}

/** RFC 9111 5.2.2, within 5 minutes and a day. */
function cacheLifeMs(cacheControl: string): number {
  const seconds = Number(/(?:^|[\s,])max-age=([0-9]{1,9})/i.exec(cacheControl)?.[1] ?? 0);
  return Math.min(CACHE_MOST_MS, Math.max(CACHE_LEAST_MS, seconds * SECOND_MS));
}

function readDocument(clientId: string, text: string, redirects: RedirectRules): Found {
  const fault = (reason: string): Found => ({ fault: `the metadata document ${reason}` });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fault('is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return fault('is no object');
  const fields = value as Readonly<Record<string, unknown>>;
  if (fields['client_id'] !== clientId) return fault('names another client_id');
  const method = fields['token_endpoint_auth_method'];
  if (method !== undefined && method !== 'none') return fault('asks for client authentication');
  const sent = fields['redirect_uris'];
  const uris = Array.isArray(sent) ? sent.slice(0, REDIRECTS_READ_MAX) : [];
  const redirectUris = uris.filter(
    (uri): uri is string => typeof uri === 'string' && judgeRedirect(uri, redirects).ok,
  );
  if (redirectUris.length === 0) return fault('has no redirect URI that is allowed');
  const name = shownName(fields['client_name'], CLIENT_NAME_MAX) ?? documentHost(clientId) ?? '';
  return { document: { name, redirectUris } };
}
