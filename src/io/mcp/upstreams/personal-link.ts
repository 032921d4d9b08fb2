/** The session of one person at a server with `auth: "user"`: every request has that person's token, and no one else's. */
import type { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import type { ModuleResult } from '../../http-client/types.ts';
import type { YieldToLoop } from '../batch.ts';
import type { CallToken, CallTokens } from '../credentials/credentials.ts';
import type { LeftOut, ReadTools } from './definitions.ts';
import { guardedFetch } from './guarded-fetch.ts';
import { listOffers, listTools, noEffect, REQUEST_MS } from './lists.ts';
import type {
  Offer,
  OfferKind,
  PersonalServer,
  UpstreamServer,
  UpstreamSession,
  UpstreamTool,
} from './types.ts';
import { OLDEST_REVISION } from './ways.ts';

/** A server that loses each session at once, or is down, is not opened for each call. */
const OPEN_INTERVAL_MS = SECOND_MS;
/** A list of prompts or resources is the answer for so long. */
const OFFERS_MS = 60 * SECOND_MS;
/** A call finds tools that were listed before that long, and has them listed again. */
const TOOLS_MS = 10 * MINUTE_MS;

export interface PersonalDeps {
  readonly server: UpstreamServer & { readonly configuration: McpServerConfiguration };
  /** Address in the configuration. */
  readonly address: string;
  readonly version: string;
  readonly tokens: CallTokens;
  readonly monotonicMs: () => number;
  readonly timer: (delayMs: number, run: () => void) => () => void;
  readonly yieldToLoop: YieldToLoop;
  /** A person's list of tools. */
  readonly onTools: (userId: string, read: ReadTools) => Promise<void>;
  readonly onLeftOut: (leftOut: readonly LeftOut[]) => void;
}

/** The server refused the token. */
export class Unauthorized extends Error {}

export class PersonalLink implements PersonalServer {
  readonly name: string;
  readonly title: string;
  readonly url: PersonalServer['url'];
  readonly pipe = undefined;
  token: CallToken;
  /** Calls that use it now. */
  users = 0;
  usedMs: number;
  readonly #userId: string;
  readonly #deps: PersonalDeps;
  readonly #guard = guardedFetch();
  readonly #offers = new Map<OfferKind, { readonly offers: readonly Offer[]; readonly endsMs: number }>();
  /** Texts of the tools that this person's list has. */
  #tools: ReadonlyMap<string, string> = new Map();
  #toolsMs = Number.NEGATIVE_INFINITY;
  #client: Client | undefined;
  #transport: StreamableHTTPClientTransport | undefined;
  #session: UpstreamSession | undefined;
  #opening: Promise<void> | undefined;
  #triedMs = Number.NEGATIVE_INFINITY;
  #wasRefused = false;
  #isClosed = false;

  constructor(userId: string, token: CallToken, deps: PersonalDeps) {
    const { name, title, url } = deps.server;
    this.name = name;
    this.title = title;
    this.url = url;
    this.token = token;
    this.#userId = userId;
    this.#deps = deps;
    this.usedMs = deps.monotonicMs();
  }

  /** The one place where a token enters a request: calls, reads, prompts and lists. */
  get headers(): Readonly<Record<string, string>> {
    return { ...this.#deps.server.headers, authorization: `Bearer ${this.token.token}` };
  }

  get session(): UpstreamSession | undefined {
    return this.#session;
  }

  /** Resolves with a session. Rejects with `Unauthorized`, `ModuleUnavailable`. */
  async open(): Promise<void> {
    if (this.#session !== undefined) return;
    const sinceMs = this.#deps.monotonicMs() - this.#triedMs;
    if (this.#opening === undefined && sinceMs < OPEN_INTERVAL_MS)
      throw new GatewayError('ModuleUnavailable');
    await this.#opened();
  }

  /** Opens with another token, at once. */
  async openWith(token: CallToken): Promise<void> {
    this.token = token;
    if (this.#session === undefined) await this.#opened();
  }

  async renewed(lost: UpstreamSession): Promise<UpstreamSession | undefined> {
    if (this.#session === lost) {
      this.#session = undefined;
      await this.open().catch(noEffect);
    }
    return this.#session;
  }

  noteCall(result: ModuleResult): void {
    this.#deps.server.noteCall(result);
  }

  leave(): void {
    this.users -= 1;
    this.usedMs = this.#deps.monotonicMs();
    if (this.usedMs - this.#toolsMs >= TOOLS_MS) this.#list();
  }

  differs({ ownName, text }: UpstreamTool): boolean {
    const own = this.#tools.get(ownName);
    return own !== undefined && own !== text;
  }

  /** Lists the offers to this person. Rejects with `Unauthorized` too. */
  async offers(kind: OfferKind): Promise<readonly Offer[]> {
    const kept = this.#offers.get(kind);
    const nowMs = this.#deps.monotonicMs();
    if (kept !== undefined && nowMs < kept.endsMs) return kept.offers;
    const client = this.#client;
    if (client === undefined) return [];
    this.#wasRefused = false;
    const { offers, leftOut } = await listOffers(this.#sourceOf(client), kind);
    if (this.#wasRefused) throw new Unauthorized();
    this.#deps.onLeftOut(leftOut);
    this.#offers.set(kind, { offers, endsMs: nowMs + OFFERS_MS });
    return offers;
  }

  relist(): void {
    this.#offers.clear();
    this.#list();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#session = undefined;
    await this.#end();
  }

  /** One attempt for all that wait. */
  #opened(): Promise<void> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    this.#triedMs = this.#deps.monotonicMs();
    void this.#end();
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const { version, address } = this.#deps;
    const client = new Client({ name: 'gatehouse', version }, { capabilities: {} });
    const transport = new StreamableHTTPClientTransport(new URL(address), {
      fetch: (address, init) => this.#fetch(address, init),
    });
    this.#guard.renew();
    this.#client = client;
    this.#transport = transport;
    this.#wasRefused = false;
    try {
      await client.connect(transport, { timeout: REQUEST_MS });
    } catch {
      await this.#end();
      throw this.#wasRefused ? new Unauthorized() : new GatewayError('ModuleUnavailable');
    }
    if (this.#isClosed) await this.#end();
    else {
      this.#session = { id: transport.sessionId, revision: transport.protocolVersion ?? OLDEST_REVISION };
      this.#list();
    }
  }

  /** No stream of notices: it would cost a connection for each person. */
  async #fetch(address: string | URL, init: RequestInit = {}): Promise<Response> {
    if (init.method === 'GET') return new Response(null, { status: 405 });
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(this.headers)) headers.set(name, value);
    const response = await this.#guard.fetch(address, { ...init, headers });
    if (response.status === 401) this.#wasRefused = true;
    return response;
  }

  #list(): void {
    const client = this.#client;
    if (client === undefined || this.#isClosed) return;
    this.#toolsMs = this.#deps.monotonicMs();
    listTools(this.#sourceOf(client))
      .then(async (read) => {
        this.#tools = new Map(read.tools.map(({ ownName, text }) => [ownName, text]));
        if (!this.#isClosed) await this.#deps.onTools(this.#userId, read);
      })
      // The next call has them listed again; what is approved is served meanwhile.
      .catch(noEffect);
  }

  #sourceOf(client: Client) {
    const { server, yieldToLoop } = this.#deps;
    const { configuration } = server;
    return { client, server, configuration, renew: () => this.#guard.renew(), yieldToLoop };
  }

  async #end(): Promise<void> {
    const [client, transport] = [this.#client, this.#transport];
    this.#client = undefined;
    this.#transport = undefined;
    await transport?.terminateSession().catch(noEffect);
    await client?.close().catch(noEffect);
  }
}
