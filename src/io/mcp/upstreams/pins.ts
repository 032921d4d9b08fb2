/**
 * Approved definitions of other servers' tools, over the actor that stores them: a tool whose definition is new or another one
 * is hidden until an admin has approved it (docs/upstreams.md).
 */
import {
  DEFINITIONS_MAX,
  type DefinitionState,
  type Definitions,
  mcpServer,
  type SeenTool,
} from '../../../actors/admin/mcp-server.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { RunningSystem } from '../../../actors/runtime/system.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { LeftOut } from './definitions.ts';
import type { UpstreamTool } from './types.ts';

/** A tool that is listed by its server and not served. */
interface HiddenTool {
  readonly tool: UpstreamTool;
  readonly state: Exclude<DefinitionState, 'approved'>;
}

export interface SettledTools {
  readonly served: readonly UpstreamTool[];
  readonly hidden: readonly HiddenTool[];
  /** Names of tools whose definition is in no earlier list. */
  readonly found: readonly string[];
  readonly leftOut: readonly LeftOut[];
}

export interface Pins {
  /** Returns the stored definitions of a server. */
  stored(server: string): Definitions;
  /** Stores what is new of the tools that a server lists now. `approvesFirst`: the first list of all is approved. */
  settle(server: string, tools: readonly UpstreamTool[], approvesFirst?: boolean): Promise<SettledTools>;
}

export function actorPins(actors: () => Pick<ActorSystem, 'ask'> & Pick<RunningSystem, 'stored'>): Pins {
  const stored = (server: string) => actors().stored(mcpServer, server, { type: 'definitions' });
  /** Undefined where there is no room for the definition. */
  const see = async (
    server: string,
    { ownName: name, text }: UpstreamTool,
  ): Promise<SeenTool | undefined> => {
    try {
      return await actors().ask(mcpServer, server, { type: 'see', name, text });
    } catch (error) {
      if (!(error instanceof GatewayError) || error.row !== 'InvalidInput') throw error;
      return undefined;
    }
  };
  const seeWithRoom = async (server: string, tools: readonly UpstreamTool[], tool: UpstreamTool) => {
    const seen = await see(server, tool);
    if (seen !== undefined) return seen;
    // Removed tools make room as a rule: a server lists at most as many as are kept.
    await actors().ask(mcpServer, server, { type: 'keep', names: tools.map(({ ownName }) => ownName) });
    return see(server, tool);
  };
  return {
    stored,
    async settle(server, tools, approvesFirst = true) {
      const before = stored(server);
      if (!approvesFirst && !before.isOpened) await actors().ask(mcpServer, server, { type: 'open' });
      const served: UpstreamTool[] = [];
      const hidden: HiddenTool[] = [];
      const found: string[] = [];
      const leftOut: LeftOut[] = [];
      for (const tool of tools.slice(0, DEFINITIONS_MAX)) {
        const { ownName: name, text } = tool;
        // Nearly every list is the same as the one before: it costs no command.
        const isKnown = ownOf(before.approved, name) === text;
        const seen = isKnown ? APPROVED : await seeWithRoom(server, tools, tool);
        if (seen === undefined)
          leftOut.push({ name, reason: 'finds no room: 4 MiB of definitions are kept' });
        else if (seen.state === 'approved') served.push(tool);
        else hidden.push({ tool, state: seen.state });
        if (seen?.isFound === true) found.push(name);
      }
      if (approvesFirst && !before.isOpened) await actors().ask(mcpServer, server, { type: 'open' });
      return { served, hidden, found, leftOut };
    },
  };
}

const APPROVED: SeenTool = { state: 'approved', isFound: false };

function ownOf<Value>(rows: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(rows, name) ? rows[name] : undefined;
}
