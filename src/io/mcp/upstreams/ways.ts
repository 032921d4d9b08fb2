/** Transports from a link to its server: streamable HTTP, or the pipes of a process. */
import type * as Sdk from '@modelcontextprotocol/client';
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import type { Target } from '../../http-client/endpoint.ts';
import { guardedFetch } from './guarded-fetch.ts';
import { StdioConnection } from './stdio/connection.ts';
import type { UpstreamPipe, UpstreamSession } from './types.ts';

/** One opened way. */
export interface Way {
  readonly transport: Sdk.Transport;
  /** Once it is connected. */
  session(): UpstreamSession;
  /** A list begins: its pages have the whole bound. */
  renew(): void;
  /** Ends the session, or the process. */
  end(): Promise<void>;
  /** True while the end of the way would end calls too. */
  isBusy(): boolean;
  /** False for a process that is young: one that ends by then failed, although it has listed its tools. */
  isSettled(): boolean;
  readonly pipe?: UpstreamPipe;
}

export interface WayDeps {
  readonly monotonicMs: () => number;
  readonly timer: (delayMs: number, run: () => void) => () => void;
  /** Gives each process of a server by command a mark of its own, once none of an earlier run is left. */
  readonly nextMark: () => Promise<string>;
  /** A line that such a process wrote beside its messages. */
  readonly onSaid: (server: string, line: string) => void;
}

interface Server {
  readonly name: string;
  readonly configuration: McpServerConfiguration;
  readonly headers: Readonly<Record<string, string>>;
}

/** Revision of a server that names none. */
export const OLDEST_REVISION = '2025-03-26';

/** The origin of a server by command names it in bounds and traces; nothing is sent there. */
export function targetOf(name: string, { url }: McpServerConfiguration): Target {
  if (url === undefined) return { origin: `stdio://${name}`, pathname: '/', search: '' };
  const { origin, pathname, search } = new URL(url);
  return { origin, pathname, search };
}

/** `onExit`: the process has ended by itself, and none of its own is left. */
export async function openWay(
  sdk: typeof Sdk,
  server: Server,
  deps: WayDeps,
  onExit: (reason: string) => void,
): Promise<Way> {
  const { url } = server.configuration;
  return url === undefined ? stdioWay(server, deps, onExit) : httpWay(sdk, server, new URL(url));
}

function httpWay({ StreamableHTTPClientTransport }: typeof Sdk, { headers }: Server, url: URL): Way {
  const guard = guardedFetch();
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers }, fetch: guard.fetch });
  return {
    transport,
    session: () => ({ id: transport.sessionId, revision: transport.protocolVersion ?? OLDEST_REVISION }),
    renew: () => guard.renew(),
    end: () => transport.terminateSession(),
    isBusy: () => false,
    isSettled: () => true,
  };
}

async function stdioWay(
  { name, configuration: { command = [], environment } }: Server,
  { monotonicMs, timer, nextMark, onSaid }: WayDeps,
  onExit: (reason: string) => void,
): Promise<Way> {
  const connection = new StdioConnection(
    { command, environment, mark: await nextMark() },
    { monotonicMs, timer, onSaid: (line) => onSaid(name, line), onExit },
  );
  return {
    transport: connection,
    session: () => ({ id: undefined, revision: connection.protocolVersion ?? OLDEST_REVISION }),
    renew: () => undefined,
    end: () => connection.close(),
    isBusy: () => connection.isBusy,
    isSettled: () => connection.isSettled,
    pipe: connection,
  };
}
