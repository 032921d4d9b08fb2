/**
 * The link to one other MCP server: the official client opens it, lists its tools and is notified of changes; calls take the module
 * client. The start never waits for a server, and one that fails is asked again with growing pauses.
 */
import type { Client } from '@modelcontextprotocol/client';
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { Target } from '../../http-client/endpoint.ts';
import type { ModuleResult } from '../../http-client/types.ts';
import type { YieldToLoop } from '../batch.ts';
import type { CallTokens } from '../credentials/credentials.ts';
import { type LeftOut, type ReadTools, readTools, TOOLS_MAX } from './definitions.ts';
import { listOffers, listTools, noEffect, REQUEST_MS, reasonOf } from './lists.ts';
import { OFFERED } from './offers.ts';
import { PersonalLinks } from './personal-links.ts';
import type { Pins, SettledTools } from './pins.ts';
import type { Offer, UpstreamPipe, UpstreamServer, UpstreamSession } from './types.ts';
import { openWay, targetOf, type Way, type WayDeps } from './ways.ts';

/** Interval between two lists without a notice of a change: many servers send none. */
const LIST_INTERVAL_MS = 60 * SECOND_MS;
/** A server that says without end that its list has changed is asked so often. */
const CHANGED_INTERVAL_MS = SECOND_MS;
/** A server that loses each session at once is not opened for each call. */
const RENEW_INTERVAL_MS = SECOND_MS;
/** A list of 512 new tools is 512 turns, at a node that follows them too. */
const FOLLOW_MS = 100;
const RETRY_FIRST_MS = SECOND_MS;
const RETRY_MAX_MS = 60 * SECOND_MS;

export interface LinkDeps extends WayDeps {
  /** Version of the gateway, which it names to servers. */
  readonly version: string;
  /** 0 to 1. */
  readonly random: () => number;
  readonly yieldToLoop: YieldToLoop;
  readonly pins: Pins;
  readonly tokens: CallTokens;
  /** The first list of a server with `auth: "user"` is approved if an admin's credentials got it. */
  readonly isAdmin: (userId: string) => boolean;
  /** The tools are other ones, or the state is. */
  readonly onChange: (link: ServerLink) => void;
  /** Tools that wait for an admin from now on. */
  readonly onFound: (link: ServerLink, names: readonly string[]) => void;
}

/** `connecting`: it has not answered yet. `down`: the last attempt to open or list failed. */
export const UPSTREAM_STATES = ['connecting', 'up', 'down'] as const;
type LinkState = (typeof UPSTREAM_STATES)[number];

/** Answered calls whose time is kept, for the 99th percentile. */
const TIMES_MAX = 512;

export class ServerLink implements UpstreamServer {
  readonly name: string;
  readonly title: string;
  readonly url: Target;
  readonly pipe: UpstreamPipe | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly configuration: McpServerConfiguration;
  /** `starts`: of its process. */
  readonly counts = { calls: 0, failed: 0, starts: 0 };
  state: LinkState = 'connecting';
  /** The reason why it is down. */
  reason: string | undefined;
  /** Tools made of the list: until there is one, of the approved definitions. */
  settled: Omit<SettledTools, 'found'> = { served: [], hidden: [], leftOut: [] };
  /** Links of people, with `auth: "user"`. */
  readonly personal: PersonalLinks | undefined;
  /** Prompts and resources of the last lists. */
  offers: readonly Offer[] = [];
  readonly #deps: LinkDeps;
  #client: Client | undefined;
  #way: Way | undefined;
  /** Ends of all former ways. */
  #ended: Promise<unknown> = Promise.resolve();
  /** Reason of the process that ended by itself since the last attempt. */
  #exitReason: string | undefined;
  #session: UpstreamSession | undefined;
  #openedMs = Number.NEGATIVE_INFINITY;
  #opening: Promise<UpstreamSession | undefined> | undefined;
  readonly #times: number[] = [];
  #timed = 0;
  /** Tools of the last list. */
  #read: ReadTools = { tools: [], leftOut: [] };
  /** With `auth: "user"`: definitions of people's lists that are not approved, and what was left out of the last one. */
  readonly #waiting = new Map<string, SettledTools['hidden'][number]>();
  #personalLeftOut: readonly LeftOut[] = [];
  #listing = false;
  #isListed = false;
  #settling: Promise<void> = Promise.resolve();
  #isListStale = false;
  /** The last list had definitions that no list had before. */
  #hasFound = false;
  #failures = 0;
  #stopTimer: (() => void) | undefined;
  #stopFollowing: (() => void) | undefined;
  #isClosed = false;

  constructor(name: string, configuration: McpServerConfiguration, deps: LinkDeps) {
    this.name = name;
    this.title = configuration.title;
    this.configuration = configuration;
    this.url = targetOf(name, configuration);
    // The pipe leads to the process that runs now.
    const pipe: UpstreamPipe = {
      channel: (id, onProgress) => ({
        begin: (body, ended) => this.#way?.pipe?.channel(id, onProgress).begin(body, ended),
      }),
      notify: (body) => this.#way?.pipe?.notify(body),
    };
    this.pipe = configuration.url === undefined ? pipe : undefined;
    const headers = Object.entries(configuration.headers);
    this.headers = Object.fromEntries(headers.map(([field, value]) => [field.toLowerCase(), value]));
    this.#deps = deps;
    const { onLeftOut, onTools } = this.#personalLists();
    const { login } = configuration;
    this.personal =
      login === null
        ? undefined
        : new PersonalLinks({ ...deps, server: this, address: login.url, onTools, onLeftOut });
  }

  get session(): UpstreamSession | undefined {
    return this.#session;
  }

  /** `before`: the end of the process that this link replaces. */
  start(before?: Promise<void>): void {
    this.settle().catch((error: unknown) => this.#failed(error));
    if (this.personal !== undefined) this.#become('up', undefined);
    else if (before === undefined) void this.#opened();
    else void before.then(() => this.#opened());
  }

  /** A node has stored definitions or a decision: compared again soon, once for all that come meanwhile. */
  applied(): void {
    if (this.#isClosed) return;
    this.#stopFollowing ??= this.#deps.timer(FOLLOW_MS, () => {
      this.#stopFollowing = undefined;
      this.settle().catch((error: unknown) => this.#failed(error));
    });
  }

  /**
   * After a decision of an admin, and at the start: until the server has listed its tools, what is approved is served, and
   * calls fail.
   */
  async settle(): Promise<void> {
    if (this.#isListed) await this.#settle(this.#read);
    else {
      const { approved } = this.#deps.pins.stored(this.name);
      const definitions = Object.values(approved).map((text): unknown => JSON.parse(text));
      const { tools } = await readTools(this, this.configuration, definitions, this.#deps.yieldToLoop);
      // Meanwhile it may have answered.
      const hidden = [...this.#waiting.values()].filter(
        ({ tool: { ownName, text } }) => !Object.hasOwn(approved, ownName) || approved[ownName] !== text,
      );
      if (!this.#isListed && !this.#isClosed)
        this.settled = { served: tools, hidden, leftOut: this.#personalLeftOut };
    }
    if (!this.#isClosed) this.#deps.onChange(this);
  }

  async renewed(lost: UpstreamSession): Promise<UpstreamSession | undefined> {
    if (this.#session !== lost) return this.#session;
    const sinceMs = this.#deps.monotonicMs() - this.#openedMs;
    if (this.#opening === undefined && sinceMs < RENEW_INTERVAL_MS) return undefined;
    return this.#opened();
  }

  noteCall(result: ModuleResult): void {
    this.counts.calls += 1;
    if (result.ok) this.#times[this.#timed++ % TIMES_MAX] = result.elapsedMs;
    else if (result.error !== 'Aborted') this.counts.failed += 1;
  }

  get outcomes() {
    const { calls, failed } = this.counts;
    return { answered: calls - failed, failed };
  }

  /** Restarts of its process. */
  get restarts(): number {
    return Math.max(0, this.counts.starts - 1);
  }

  /** Null without an answered call. */
  get p99Milliseconds(): number | null {
    const times = [...this.#times].sort((a, b) => a - b);
    const time = times[Math.ceil(times.length * 0.99) - 1];
    return time === undefined ? null : Math.round(time);
  }

  /** Asks for the tools at once. */
  relist(): void {
    if (this.personal !== undefined) this.personal.relist();
    else if (this.#session === undefined) void this.#opened();
    else this.#list();
  }

  /** Ends the session, which the server learns of if it answers. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopTimer?.();
    this.#stopFollowing?.();
    this.#session = undefined;
    await Promise.all([this.#end(), this.personal?.close()]);
  }

  /** One person's list serves nothing: what is approved is served to all, and what is not is shown to admins. */
  #personalLists() {
    return {
      onTools: async (userId: string, read: ReadTools) => {
        const { pins, isAdmin, onFound } = this.#deps;
        const { served, hidden, found, leftOut } = await pins.settle(this.name, read.tools, isAdmin(userId));
        for (const { ownName } of served) this.#waiting.delete(ownName);
        for (const each of hidden) this.#waiting.set(each.tool.ownName, each);
        for (const ownName of [...this.#waiting.keys()].slice(0, -TOOLS_MAX)) this.#waiting.delete(ownName);
        this.#personalLeftOut = [...read.leftOut, ...leftOut];
        await this.settle();
        if (found.length > 0 && !this.#isClosed) onFound(this, found);
      },
      onLeftOut: (leftOut: readonly LeftOut[]) => {
        if (leftOut.length > 0) this.#personalLeftOut = leftOut;
      },
    };
  }

  /** One attempt for all that wait. */
  #opened(): Promise<UpstreamSession | undefined> {
    this.#opening ??= this.#open().then(
      () => {
        this.#opening = undefined;
        this.#list();
        return this.#session;
      },
      (error: unknown) => {
        this.#opening = undefined;
        this.#failed(error);
        return undefined;
      },
    );
    return this.#opening;
  }

  async #open(): Promise<void> {
    if (this.#isClosed) return;
    this.#stopTimer?.();
    this.#openedMs = this.#deps.monotonicMs();
    this.#exitReason = undefined;
    const ended = this.#end();
    // Two processes would hold the same files.
    if (this.pipe !== undefined) await ended;
    if (this.pipe !== undefined && !this.#isClosed) this.counts.starts += 1;
    const sdk = await import('@modelcontextprotocol/client');
    const client = new sdk.Client({ name: 'gatehouse', version: this.#deps.version }, { capabilities: {} });
    const way: Way = await openWay(sdk, this, this.#deps, (reason) => this.#exited(way, reason));
    if (this.#isClosed) return;
    for (const list of ['tools', 'prompts', 'resources'] as const)
      client.setNotificationHandler(`notifications/${list}/list_changed`, () => this.#changed());
    this.#client = client;
    this.#way = way;
    await client.connect(way.transport, { timeout: REQUEST_MS });
    if (this.#isClosed) await this.#end();
    else this.#session = way.session();
  }

  /** A process ended by itself. */
  #exited(way: Way, reason: string): void {
    if (this.#way !== way) return;
    this.#session = undefined;
    this.#exitReason = reason;
    // Requests under way fail by themselves.
    if (this.#opening === undefined && !this.#listing) this.#failed(new Error(reason));
  }

  async #end(): Promise<void> {
    const [client, way] = [this.#client, this.#way];
    this.#client = undefined;
    this.#way = undefined;
    this.#ended = Promise.all([this.#ended, endOf(way, client)]);
    await this.#ended;
  }

  #changed(): void {
    this.#isListStale = true;
    if (!this.#listing) this.#wait(this.#changedMs, () => this.#list());
  }

  /** New definitions are stored: a server with ever other definitions writes once a minute. */
  get #changedMs(): number {
    return this.#hasFound ? LIST_INTERVAL_MS : CHANGED_INTERVAL_MS;
  }

  #list(): void {
    const client = this.#client;
    if (client === undefined || this.#isClosed || this.#listing) return;
    this.#listing = true;
    this.#isListStale = false;
    this.#hasFound = false;
    this.#readList(client).then(
      () => {
        this.#listing = false;
        if (this.#isClosed) return;
        if (this.#way?.isSettled() === true) this.#failures = 0;
        this.#become('up', undefined);
        this.#wait(this.#isListStale ? this.#changedMs : LIST_INTERVAL_MS, () => this.#list());
      },
      (error: unknown) => {
        this.#listing = false;
        this.#failed(error);
      },
    );
  }

  async #readList(client: Client): Promise<void> {
    const { configuration } = this;
    const { yieldToLoop } = this.#deps;
    const source = { client, server: this, configuration, renew: () => this.#way?.renew(), yieldToLoop };
    const read = await listTools(source);
    const leftOut: LeftOut[] = [];
    const offers: Offer[] = [];
    for (const kind of OFFERED) {
      const found = await listOffers(source, kind);
      offers.push(...found.offers);
      leftOut.push(...found.leftOut);
    }
    this.offers = offers;
    this.#read = { tools: read.tools, leftOut: [...read.leftOut, ...leftOut] };
    this.#isListed = true;
    await this.#settle(this.#read);
  }

  /** One after the other: a decision counts although a list is compared at the same time. */
  #settle(read: ReadTools): Promise<void> {
    const settled = this.#settling.catch(noEffect).then(() => this.#settleOnce(read));
    this.#settling = settled;
    return settled;
  }

  async #settleOnce(read: ReadTools): Promise<void> {
    const { found, ...settled } = await this.#deps.pins.settle(this.name, read.tools);
    if (this.#isClosed) return;
    this.settled = { ...settled, leftOut: [...read.leftOut, ...settled.leftOut] };
    if (found.length === 0) return;
    this.#hasFound = true;
    this.#deps.onFound(this, found);
  }

  /** The session stays: a server that is slow to list may answer calls. */
  #failed(error: unknown): void {
    if (this.#isClosed) return;
    const baseMs = Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 10);
    this.#become('down', this.#exitReason ?? reasonOf(error));
    this.#wait(baseMs * (0.5 + this.#deps.random() / 2), () => this.#retry());
  }

  /** A process that works on calls is not ended for a list that it does not answer meanwhile. */
  #retry(): void {
    if (this.#session !== undefined && this.#way?.isBusy() === true) this.#list();
    else void this.#opened();
  }

  #become(state: LinkState, reason: string | undefined): void {
    this.state = state;
    this.reason = reason;
    this.#deps.onChange(this);
  }

  #wait(delayMs: number, run: () => void): void {
    this.#stopTimer?.();
    if (!this.#isClosed) this.#stopTimer = this.#deps.timer(delayMs, run);
  }
}

async function endOf(way: Way | undefined, client: Client | undefined): Promise<void> {
  await way?.end().catch(noEffect);
  await client?.close().catch(noEffect);
}
