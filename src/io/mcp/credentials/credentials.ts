/**
 * Credentials of people for other MCP servers: what an owner does with them, and the token that a call is sent with. Secrets
 * leave the account's actor sealed and are opened here alone.
 */

import { randomBytes } from 'node:crypto';
import { user } from '../../../actors/accounts/user.ts';
import type { CallCredential } from '../../../actors/accounts/user-upstreams.ts';
import type { Origin } from '../../../actors/change.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { UpstreamPort } from '../../../actors/runtime/ports.ts';
import type { SealedKey } from '../../../domain/apps.ts';
import type { McpServerConfiguration, McpServerLogin } from '../../../domain/config/mcp-servers.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { Holder } from '../../../domain/limits/holders.ts';
import { keepNewest } from '../../../domain/limits/newest.ts';
import type { SharedBound } from '../../../domain/limits/shares.ts';
import { UPSTREAM_RENEW_MS } from '../../../domain/oauth/upstream-credentials.ts';
import type { Site } from '../../../domain/site.ts';
import type { ApiKeyCipher } from '../../apps/api-keys.ts';
import { digest } from '../../connect/sealed.ts';
import { gatewayClient } from './client-document.ts';
import { beginLogin, exchangeCode, GrantOver, isToken, LoginFailure, refreshTokens } from './oauth.ts';
import { type OutsideOptions, withOutside } from './outside-fetch.ts';
import { type CredentialSecret, type LoginFlow, secretText } from './secrets.ts';

/** Opened tokens that are kept, so that not each call opens one. */
const OPENED_MAX = 1_000;
const STATE_BYTES = 32;

type Configured = Readonly<Record<string, McpServerConfiguration>>;
type Actors = Pick<ActorSystem, 'ask' | 'now' | 'query'>;

export interface CredentialDeps extends OutsideOptions {
  readonly actors: () => Actors;
  readonly cipher: () => Pick<ApiKeyCipher, 'seal' | 'tryOpen'>;
  /** `McpServers` as they are now. */
  readonly servers: () => Configured;
  readonly site: () => Pick<Site, 'project' | 'baseUrl'>;
  readonly clock: () => number;
  /** Logins that ask a server at once. */
  readonly bound: SharedBound;
}

/** A server as its people see it. */
export interface UpstreamAccount {
  readonly server: string;
  readonly title: string;
  readonly kind: 'oauth' | 'token' | null;
  readonly connectedMs: number | null;
}

/** The person who connects, with the browser session. */
interface Person {
  readonly userId: string;
  readonly sessionId: string;
  readonly origin: Origin;
  readonly holder: Holder;
}

/** The token of a call. */
export interface CallToken {
  readonly token: string;
  /** Key id of the sealed credential. */
  readonly keyId: string;
  /** Another time is another login at the server. */
  readonly connectedMs: number;
}

/** Tokens that links to servers need. */
export interface CallTokens {
  /** Time of the person's login there, Unix milliseconds; undefined without one. */
  connectedMs(userId: string, server: string, url: string): number | undefined;
  /** Rejects with `UpstreamLoginRequired`. */
  find(userId: string, server: string, url: string): CallToken | Promise<CallToken>;
  /** The server refused this one. Rejects with `UpstreamLoginRequired`. */
  renew(userId: string, server: string, url: string, overKeyId: string): Promise<CallToken>;
}

export class UpstreamCredentials implements CallTokens {
  readonly #deps: CredentialDeps;
  readonly #secrets;
  readonly #flows;
  readonly #opened = new Map<string, string>();
  readonly #renewing = new Map<string, Promise<CallToken>>();

  constructor(deps: CredentialDeps) {
    this.#deps = deps;
    this.#secrets = secretText<CredentialSecret>(deps.cipher);
    this.#flows = secretText<LoginFlow>(deps.cipher);
  }

  /** Servers that people connect. */
  async list(userId: string): Promise<UpstreamAccount[]> {
    const connected = await this.#deps.actors().query(user, userId, { type: 'upstreams' });
    return Object.entries(this.#deps.servers()).flatMap(([server, { title, login }]) => {
      if (login === null) return [];
      const found = connected.find((each) => each.server === server && each.url === login.url);
      const { kind = null, connectedMs = null } = found ?? {};
      return [{ server, title, kind, connectedMs }];
    });
  }

  /** The address that the browser goes to. */
  async connect({ userId, sessionId, holder }: Person, server: string): Promise<string> {
    const login = this.#require(server);
    const state = randomBytes(STATE_BYTES).toString('base64url');
    const { address, flow } = await this.#outside(login, holder, (outside) =>
      beginLogin(outside, login, gatewayClient(this.#deps.site()), state),
    );
    const opened = { stateHash: digest(state), server, url: login.url, flow: this.#flows.seal(flow) };
    await this.#deps.actors().ask(user, userId, { type: 'openUpstreamLogin', login: opened, sessionId });
    return address;
  }

  /** The browser is back with an answer. Resolves with the server. */
  async finish(
    person: Person,
    answer: { readonly state: string; readonly code: string | undefined; readonly iss: string | undefined },
  ): Promise<string> {
    const { userId, sessionId } = person;
    const { server, url, flow } = await this.#deps.actors().ask(user, userId, {
      type: 'takeUpstreamLogin',
      stateHash: digest(answer.state),
      sessionId,
    });
    const login = this.#require(server);
    const opened = this.#flows.open(flow);
    const { code, iss } = answer;
    if (login.url !== url || opened === undefined) throw new GatewayError('ChallengeExpired');
    if (code === undefined) throw new GatewayError('AccessDenied', 'the login at the server was refused');
    const { redirectUri } = gatewayClient(this.#deps.site());
    const { secret, expiresMs } = await this.#outside(login, person.holder, (outside) =>
      exchangeCode(outside, opened, { code, iss }, redirectUri, this.#deps.clock()),
    );
    await this.#store(person, server, url, 'oauth', secret, expiresMs, secret.refresh !== null);
    return server;
  }

  /** A personal token. */
  async setToken(person: Omit<Person, 'holder'>, server: string, token: string): Promise<void> {
    const { url } = this.#require(server);
    if (!isToken(token))
      throw new GatewayError('InvalidInput', 'token: expected printable characters without blanks');
    await this.#store(person, server, url, 'token', { access: token }, null, false);
  }

  async disconnect(userId: string, server: string, origin: Origin): Promise<void> {
    await this.#deps.actors().ask(user, userId, { type: 'disconnectUpstream', server, origin });
  }

  connectedMs(userId: string, server: string, url: string): number | undefined {
    return this.#found(userId, server, url)?.connectedMs;
  }

  find(userId: string, server: string, url: string): CallToken | Promise<CallToken> {
    const found = this.#found(userId, server, url);
    if (found === undefined) throw new GatewayError('UpstreamLoginRequired');
    const { expiresMs, canRefresh, sealed } = found;
    if (canRefresh && expiresMs !== null && this.#deps.clock() >= expiresMs - UPSTREAM_RENEW_MS)
      return this.renew(userId, server, url, sealed.keyId);
    return this.#opensTo(found);
  }

  /** Calls of this node share one command, and those of all nodes one refresh. */
  renew(userId: string, server: string, url: string, overKeyId: string): Promise<CallToken> {
    const key = JSON.stringify([userId, server, url, overKeyId]);
    const running = this.#renewing.get(key);
    if (running !== undefined) return running;
    const renewed = this.#deps
      .actors()
      .ask(user, userId, { type: 'renewUpstream', server, url, overKeyId })
      .then((found) => this.#opensTo(found))
      .finally(() => this.#renewing.delete(key));
    this.#renewing.set(key, renewed);
    return renewed;
  }

  /** The port of the actors. */
  readonly port: UpstreamPort = {
    refresh: async ({ server, url, sealed }) => {
      const login = this.#deps.servers()[server]?.login;
      const secret = this.#secrets.open(sealed);
      if (!login || login.url !== url || secret === undefined || !('refresh' in secret))
        return { ok: false, error: 'UpstreamLoginRequired' };
      try {
        const { secret: next, expiresMs } = await withOutside(this.#deps, url, login.networks, (outside) =>
          refreshTokens(outside, secret, this.#deps.clock()),
        );
        return { ok: true, value: { sealed: this.#secrets.seal(next), expiresMs } };
      } catch (error) {
        return {
          ok: false,
          error: error instanceof GrantOver ? 'UpstreamLoginRequired' : 'ModuleUnavailable',
        };
      }
    },
  };

  /** A token is sent to the address alone for which it was given. */
  #found(userId: string, server: string, url: string): CallCredential | undefined {
    const found = this.#deps.actors().now(user, userId, { type: 'upstreamCredential', server });
    return found?.url === url ? found : undefined;
  }

  async #store(
    { userId, sessionId, origin }: Omit<Person, 'holder'>,
    server: string,
    url: string,
    kind: 'oauth' | 'token',
    secret: CredentialSecret,
    expiresMs: number | null,
    canRefresh: boolean,
  ): Promise<void> {
    const sealed = this.#secrets.seal(secret);
    const credential = { server, url, kind, sealed, expiresMs, canRefresh };
    await this.#deps.actors().ask(user, userId, { type: 'connectUpstream', credential, sessionId, origin });
  }

  #require(server: string): McpServerLogin {
    const servers = this.#deps.servers();
    const login = Object.hasOwn(servers, server) ? servers[server]?.login : undefined;
    if (!login) throw new GatewayError('NotFound', 'no such server that people connect');
    return login;
  }

  async #outside<T>(
    { url, networks }: McpServerLogin,
    holder: Holder,
    run: Parameters<typeof withOutside<T>>[3],
  ): Promise<T> {
    const lease = this.#deps.bound.require(holder);
    try {
      return await withOutside(this.#deps, url, networks, run);
    } catch (error) {
      if (error instanceof LoginFailure) throw new GatewayError('ModuleFailed', error.message);
      throw error;
    } finally {
      lease.release();
    }
  }

  #opensTo({ sealed, connectedMs }: CallCredential): CallToken {
    const token = this.#opened.get(sealed.sealed) ?? this.#open(sealed);
    return { token, keyId: sealed.keyId, connectedMs };
  }

  #open(sealed: SealedKey): string {
    const secret = this.#secrets.open(sealed);
    if (secret === undefined) throw new GatewayError('UpstreamLoginRequired');
    keepNewest(this.#opened, OPENED_MAX, sealed.sealed, secret.access);
    return secret.access;
  }
}
