/** All other MCP servers of the configuration: their links, and the tools that they list now. */
import { isDeepStrictEqual } from 'node:util';
import type { Definitions } from '../../../actors/admin/mcp-server.ts';
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import type { Log } from '../../observability/log.ts';
import { type LinkDeps, ServerLink } from './link.ts';
import type { PersonalUpstream } from './offers.ts';
import { endMarked } from './stdio/leftovers.ts';
import type { Offer, UpstreamTool } from './types.ts';

type Configured = Readonly<Record<string, McpServerConfiguration>>;

interface ServersDeps extends Omit<LinkDeps, 'onChange' | 'onFound' | 'onSaid' | 'nextMark'> {
  /** Names this gateway among all of the machine, in the environment of processes that it starts. */
  readonly owner: () => string;
  readonly log: Log;
  /** The tools are other ones. */
  readonly onTools: () => void;
  /** Tools of a server that wait for an admin from now on. */
  readonly onFound: (server: string, names: readonly string[]) => void;
}

/** The part of the servers that the admin panel needs. */
export interface UpstreamAdministration {
  readonly links: readonly ServerLink[];
  stored(server: string): Definitions;
  settle(server: string): Promise<void>;
}

export class UpstreamServers implements UpstreamAdministration {
  readonly #deps: ServersDeps;
  readonly #links = new Map<string, ServerLink>();
  #marks = 0;
  #leftoversEnded: Promise<void> | undefined;
  /** Last text in the log about each link. */
  readonly #logged = new WeakMap<ServerLink, string>();

  constructor(deps: ServersDeps) {
    this.#deps = deps;
  }

  readonly #own = {
    nextMark: () => this.#nextMark(),
    onSaid: (server: string, detail: string) => this.#deps.log.write('mcpServerSaid', { server, detail }),
  };

  /** Opens, keeps and closes links as the configuration says. A server with another configuration loses its tools until it is listed. */
  follow(configured: Configured): void {
    const ends = new Map<string, Promise<void>>();
    for (const [name, link] of this.#links) {
      if (isDeepStrictEqual(configured[name], link.configuration)) continue;
      this.#links.delete(name);
      const end = link.close();
      if (link.pipe !== undefined) ends.set(name, end);
    }
    const onChange = (link: ServerLink) => this.#changed(link);
    const onFound = (link: ServerLink, names: readonly string[]) => this.#found(link, names);
    for (const [name, configuration] of Object.entries(configured)) {
      if (this.#links.has(name)) continue;
      const link = new ServerLink(name, configuration, { ...this.#deps, ...this.#own, onChange, onFound });
      this.#links.set(name, link);
      link.start(ends.get(name));
    }
  }

  tools(): readonly UpstreamTool[] {
    return [...this.#links.values()].flatMap(({ settled }) => settled.served);
  }

  offers(): readonly Offer[] {
    return [...this.#links.values()].flatMap(({ offers }) => offers);
  }

  /** Servers at which each caller is someone else. */
  personal(): PersonalUpstream[] {
    return [...this.#links.values()].flatMap((server) => {
      const { personal: sessions, configuration } = server;
      return sessions === undefined ? [] : [{ server, sessions, configuration }];
    });
  }

  get links(): readonly ServerLink[] {
    return [...this.#links.values()];
  }

  stored(server: string): Definitions {
    return this.#deps.pins.stored(server);
  }

  /** Rows of its actor were applied, of any node of a cluster. */
  applied(server: string): void {
    this.#links.get(server)?.applied();
  }

  /** Applies a decision of an admin: effective when it resolves. */
  async settle(server: string): Promise<void> {
    await this.#links.get(server)?.settle();
  }

  async close(): Promise<void> {
    const links = this.links;
    this.#links.clear();
    await Promise.all(links.map((link) => link.close()));
  }

  /** Processes of a gateway that was killed are ended before the first one of this run is started. */
  async #nextMark(): Promise<string> {
    const owner = this.#deps.owner();
    this.#leftoversEnded ??= endMarked(`${owner}/`);
    await this.#leftoversEnded;
    this.#marks += 1;
    return `${owner}/${this.#marks}`;
  }

  #changed(link: ServerLink): void {
    if (this.#links.get(link.name) !== link) return;
    this.#logState(link);
    this.#deps.onTools();
  }

  #found({ name: server }: ServerLink, names: readonly string[]): void {
    this.#deps.log.write('mcpToolsWait', {
      server,
      detail: names.join(', ').slice(0, LEFT_OUT_CHARACTERS_MAX),
    });
    this.#deps.onFound(server, names);
  }

  #logState({ name: server, state, reason = '', settled }: ServerLink): void {
    const link = this.#links.get(server);
    const leftOut = settled.leftOut.map((each) => `${each.name}: ${each.reason}`).join('; ');
    const tools = settled.served.length;
    const line = JSON.stringify([state, reason, tools, leftOut]);
    if (state === 'connecting' || link === undefined || this.#logged.get(link) === line) return;
    this.#logged.set(link, line);
    const { log } = this.#deps;
    if (state === 'down') log.write('mcpServerDown', { server, detail: reason });
    else log.write('mcpServerUp', { server, tools });
    if (state === 'up' && leftOut !== '')
      log.write('mcpToolsLeftOut', { server, detail: leftOut.slice(0, LEFT_OUT_CHARACTERS_MAX) });
  }
}

const LEFT_OUT_CHARACTERS_MAX = 2_000;
