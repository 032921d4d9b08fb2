/** All other MCP servers of the configuration: their links, and the tools that they list now. */
import { isDeepStrictEqual } from 'node:util';
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import type { Log } from '../../observability/log.ts';
import { type LinkDeps, ServerLink } from './link.ts';
import type { UpstreamTool } from './types.ts';

type Configured = Readonly<Record<string, McpServerConfiguration>>;

interface ServersDeps extends Omit<LinkDeps, 'onChange'> {
  readonly log: Log;
  /** The tools are other ones. */
  readonly onTools: () => void;
}

export class UpstreamServers {
  readonly #deps: ServersDeps;
  readonly #links = new Map<string, ServerLink>();
  /** What the log said last. */
  readonly #logged = new WeakMap<ServerLink, string>();

  constructor(deps: ServersDeps) {
    this.#deps = deps;
  }

  /** Opens, keeps and closes links as the configuration says. A server with another configuration loses its tools until it is listed. */
  follow(configured: Configured): void {
    for (const [name, link] of this.#links) {
      if (isDeepStrictEqual(configured[name], link.configuration)) continue;
      this.#links.delete(name);
      void link.close();
    }
    const onChange = (link: ServerLink) => this.#changed(link);
    for (const [name, configuration] of Object.entries(configured)) {
      if (this.#links.has(name)) continue;
      const link = new ServerLink(name, configuration, { ...this.#deps, onChange });
      this.#links.set(name, link);
      link.open();
    }
  }

  tools(): readonly UpstreamTool[] {
    return [...this.#links.values()].flatMap(({ read }) => read.tools);
  }

  get links(): readonly ServerLink[] {
    return [...this.#links.values()];
  }

  async close(): Promise<void> {
    const links = this.links;
    this.#links.clear();
    await Promise.all(links.map((link) => link.close()));
  }

  #changed(link: ServerLink): void {
    if (this.#links.get(link.name) !== link) return;
    this.#logState(link);
    if (link.state === 'up') this.#deps.onTools();
  }

  #logState({ name: server, state, reason = '', read }: ServerLink): void {
    const link = this.#links.get(server);
    const leftOut = read.leftOut.map((each) => `${each.name}: ${each.reason}`).join('; ');
    const line = JSON.stringify([state, reason, read.tools.length, leftOut]);
    if (link === undefined || this.#logged.get(link) === line) return;
    this.#logged.set(link, line);
    const { log } = this.#deps;
    if (state === 'down') log.write('mcpServerDown', { server, detail: reason });
    else log.write('mcpServerUp', { server, tools: read.tools.length });
    if (state === 'up' && leftOut !== '')
      log.write('mcpToolsLeftOut', { server, detail: leftOut.slice(0, LEFT_OUT_CHARACTERS_MAX) });
  }
}

const LEFT_OUT_CHARACTERS_MAX = 2_000;
