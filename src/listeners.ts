/** The two sockets that the gateway listens on, and the windows of callers that are counted by connection. */
import { Limiter } from './actors/limiter.ts';
import type { Configuration } from './domain/configuration.ts';
import type { SettingsReader } from './domain/settings.ts';
import type { SharedBounds } from './domain/shares.ts';
import { ConnectionShares } from './io/http/connection-shares.ts';
import { findFreePort } from './io/http/free-port.ts';
import { boundReceiveBuffer } from './io/http/receive-buffer.ts';
import { createServer, type Server } from './io/http/server.ts';
import type { Log } from './io/log.ts';
import { createRenewal } from './tls.ts';

const CONNECTIONS_INTERNAL_MAX = 1_000;

export interface Listeners {
  readonly limiter: Limiter;
  readonly publicServer: Server;
  readonly internalServer: Server;
  /** See `createRenewal`. */
  readonly renewCertificate: () => Promise<void>;
}

/** Throws `ListenError` when a port is taken. */
export async function openListeners(
  { listen, internal, trustedProxies }: Configuration,
  settings: SettingsReader,
  bounds: SharedBounds,
  log: Log,
): Promise<Listeners> {
  let limiter: Limiter | undefined;
  const shares = new ConnectionShares({ bounds, trustedProxies, elapsed: () => performance.now() });
  const publicServer = createServer({
    host: listen.host,
    port: await findFreePort(listen.host, listen.port),
    ...(listen.tls === undefined ? {} : { tls: listen.tls }),
    connectionsMax: () => settings.get('ConnectionsMax'),
    admits: (address, open) => shares.admits(address, open),
    onOpen: (address) => limiter?.opened(address, Date.now()),
  });
  if (listen.receiveBufferBytes > 0) {
    const hindrance = await boundReceiveBuffer(publicServer.port, listen.receiveBufferBytes);
    if (hindrance !== undefined)
      log.warn({ hindrance }, 'receive buffers are not bounded: uploads at line rate can hold up everybody');
  }
  const internalServer = createServer({
    host: internal.host,
    port: await findFreePort(internal.host, internal.port),
    connectionsMax: () => CONNECTIONS_INTERNAL_MAX,
  });
  bounds.observe('connections', () => publicServer.counters().open);
  limiter = new Limiter({ settings, connectionsOpen: () => publicServer.counters().open });
  const renewCertificate = createRenewal({ listen, server: publicServer, log });
  return { limiter, publicServer, internalServer, renewCertificate };
}
