/** The public and the internal listener, and the rate limiter of connections and addresses. */
import { LimitExchange } from '../actors/limits/limit-exchange.ts';
import { Limiter } from '../actors/limits/limiter.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import { ConnectionShares } from '../io/http/listen/connection-shares.ts';
import { reservePorts } from '../io/http/listen/free-port.ts';
import { boundReceiveBuffer } from '../io/http/listen/receive-buffer.ts';
import { createServer, type RequestHandler, type Server } from '../io/http/listen/server.ts';
import type { Log } from '../io/observability/log.ts';
import { descriptorLimit } from '../io/observability/machine.ts';
import { createRenewal } from './tls.ts';

const CONNECTIONS_INTERNAL_MAX = 1_000;

interface Listeners {
  readonly limiter: Limiter;
  /** Exchange of limits between the nodes of a cluster; absent without one. */
  readonly exchange: LimitExchange | undefined;
  readonly publicServer: Server;
  readonly internalServer: Server;
  /** See `createRenewal`. */
  readonly renewCertificate: () => Promise<void>;
  /** Opens both ports, at the end of a start. Rejects with `ListenError` when one was taken meanwhile. */
  open(servePublic: RequestHandler, serveInternal: RequestHandler): Promise<void>;
}

/** Reserves both ports; nothing listens until `open`. Rejects with `ListenError` when one is taken. */
export async function reserveListeners(
  { listen, internal, trustedProxies, cluster }: Configuration,
  settings: SettingsReader,
  bounds: SharedBounds,
  log: Log,
): Promise<Listeners> {
  const [publicPort, internalPort] = await reservePorts([listen, internal]);
  if (publicPort === undefined || internalPort === undefined) throw new Error('a port was not tried');
  const shares = new ConnectionShares({ bounds, trustedProxies, elapsed: () => performance.now() });
  const exchange = cluster && new LimitExchange(settings);
  const connectionsOpen = () => publicServer.counters().open;
  const limiter = new Limiter({ settings, clock: Date.now, connectionsOpen, exchange });
  const publicServer: Server = createServer({
    host: listen.host,
    port: publicPort.port,
    ...(listen.tls === undefined ? {} : { tls: listen.tls }),
    connectionsMax: () => settings.get('ConnectionsMax'),
    accepts: (address, open) => shares.accepts(address, open),
    onOpen: (address) => limiter.opened(address, Date.now()),
    onClosed: (address) => shares.closed(address),
  });
  const internalServer = createServer({
    host: internal.host,
    port: internalPort.port,
    connectionsMax: () => CONNECTIONS_INTERNAL_MAX,
  });
  bounds.observe('connections', () => publicServer.counters().open);
  const boundBuffers = () => boundPublicBuffers(publicServer.port, listen.receiveBufferBytes, log);
  const renewCertificate = createRenewal({ tls: listen.tls, server: publicServer, boundBuffers, log });
  return {
    limiter,
    exchange,
    publicServer,
    internalServer,
    renewCertificate,
    async open(servePublic, serveInternal) {
      warnOfDescriptors(settings.get('ConnectionsMax'), log);
      await internalPort.claim();
      internalServer.serve(serveInternal);
      await publicPort.claim();
      publicServer.serve(servePublic);
      await boundBuffers();
    },
  };
}

/**
 * Bounds the receive buffers of connections that are accepted from now on. Where it is not possible, the log says so.
 */
async function boundPublicBuffers(port: number, sizeBytes: number, log: Log): Promise<void> {
  if (sizeBytes === 0) return;
  const hindrance = await boundReceiveBuffer(port, sizeBytes);
  if (hindrance !== undefined) log.write('receiveBufferUnbounded', { detail: hindrance });
}

/** Each connection needs a file descriptor. Above the limit, clients wait without an answer. */
function warnOfDescriptors(connectionsMax: number, log: Log): void {
  const limit = descriptorLimit();
  if (limit === undefined || connectionsMax <= limit) return;
  log.write('descriptorsShort', { connectionsMax, descriptorLimit: limit });
}
