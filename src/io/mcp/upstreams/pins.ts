/**
 * Approved definitions of other servers' tools, over the actor that stores them: a tool whose definition is new or another one
 * is hidden until an admin has approved it (docs/upstreams.md).
 */
import {
  DEFINITIONS_MAX,
  type DefinitionState,
  type Definitions,
  mcpServer,
} from '../../../actors/admin/mcp-server.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { RunningSystem } from '../../../actors/runtime/system.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { UpstreamTool } from './types.ts';

/** A tool that is listed by its server and not served. */
export interface HiddenTool {
  readonly tool: UpstreamTool;
  readonly state: Exclude<DefinitionState, 'approved'>;
}

export interface SettledTools {
  readonly served: readonly UpstreamTool[];
  readonly hidden: readonly HiddenTool[];
  /** Names of tools that nothing waited for before. */
  readonly found: readonly string[];
}

export interface Pins {
  /** What is stored of a server. */
  stored(server: string): Definitions;
  /** Stores what is new of the tools that a server lists now. */
  settle(server: string, tools: readonly UpstreamTool[]): Promise<SettledTools>;
}

export function actorPins(actors: () => Pick<ActorSystem, 'ask'> & Pick<RunningSystem, 'stored'>): Pins {
  const stored = (server: string) => actors().stored(mcpServer, server, { type: 'definitions' });
  const see = async (
    server: string,
    tools: readonly UpstreamTool[],
    { ownName: name, text }: UpstreamTool,
  ) => {
    const command = { type: 'see', name, text } as const;
    try {
      return await actors().ask(mcpServer, server, command);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.row !== 'InvalidInput') throw error;
    }
    // There is room without the tools that are gone: a server lists at most as many as are kept.
    await actors().ask(mcpServer, server, { type: 'keep', names: tools.map(({ ownName }) => ownName) });
    return actors().ask(mcpServer, server, command);
  };
  return {
    stored,
    async settle(server, tools) {
      const before = stored(server);
      const served: UpstreamTool[] = [];
      const hidden: HiddenTool[] = [];
      const found: string[] = [];
      for (const tool of tools.slice(0, DEFINITIONS_MAX)) {
        const { ownName, text } = tool;
        const waiting = ownOf(before.proposed, ownName);
        // Nearly every list is the same as the one before: it costs no command.
        const isKnown = waiting === undefined && ownOf(before.approved, ownName) === text;
        const state = isKnown ? 'approved' : await see(server, tools, tool);
        if (state === 'approved') served.push(tool);
        else hidden.push({ tool, state });
        if (state !== 'approved' && waiting?.text !== text) found.push(ownName);
      }
      if (!before.isOpened) await actors().ask(mcpServer, server, { type: 'open' });
      return { served, hidden, found };
    },
  };
}

function ownOf<Value>(rows: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(rows, name) ? rows[name] : undefined;
}
