/** The two sockets that the gateway listens on, and the windows of callers that are counted by connection. */
import { Limiter } from './actors/limiter.ts';
import type { Configuration } from './domain/configuration.ts';
import type { SettingsReader } from './domain/settings.ts';
import { createServer, findFreePort, type Server } from './io/http/server.ts';

const CONNECTIONS_INTERNAL_MAX = 1_000;

export interface Listeners {
  readonly limiter: Limiter;
  readonly publicServer: Server;
  readonly internalServer: Server;
}

/** Throws `ListenError` when a port is taken. */
export async function openListeners(
  { listen, internal }: Configuration,
  settings: SettingsReader,
): Promise<Listeners> {
  let limiter: Limiter | undefined;
  const publicServer = createServer({
    host: listen.host,
    port: await findFreePort(listen.host, listen.port),
    ...(listen.tls === undefined ? {} : { tls: listen.tls }),
    connectionsMax: () => settings.get('ConnectionsMax'),
    onOpen: (address) => limiter?.opened(address, Date.now()),
  });
  const internalServer = createServer({
    host: internal.host,
    port: await findFreePort(internal.host, internal.port),
    connectionsMax: () => CONNECTIONS_INTERNAL_MAX,
  });
  limiter = new Limiter({ settings, connectionsOpen: () => publicServer.counters().open });
  return { limiter, publicServer, internalServer };
}
