/** Sockets of links: plain on loopback or by the operator's word, TLS 1.3 anywhere else. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { HostPort } from '../../domain/host-port.ts';
import { isLoopback } from '../../domain/limits/networks.ts';

/** PEM texts. */
interface LinkTls {
  readonly cert: string;
  readonly key: string;
  /** Nodes must have certificates of it. Absent: the secret of the cluster alone says who is a node. */
  readonly ca?: string;
}

export interface Transport {
  readonly tls?: LinkTls | undefined;
  /** The network between the nodes is private: without TLS links leave the machine in plain text. */
  readonly plain: boolean;
}

/** Longest TLS handshake, of a client that need not be a node. */
const TLS_HANDSHAKE_MS = 2_000;
const MAPPED = '::ffff:';

/** Would the bytes of this connection be readable on the way, against the operator's will? */
export function isExposed({ tls, plain }: Transport, host: string | undefined): boolean {
  if (tls !== undefined || plain) return false;
  return host === undefined || !isLoopback(canonical(host));
}

/** Returns the address without the prefix of an IPv4 address on an IPv6 socket. */
export function canonical(address: string): string {
  return address.startsWith(MAPPED) ? address.slice(MAPPED.length) : address;
}

/** Calls `onReady` when bytes may be sent. */
export function openSocket({ tls }: Transport, { host, port }: HostPort, onReady: () => void): Socket {
  if (tls === undefined) return connect({ host, port, noDelay: true }, onReady);
  const { cert, key, ca } = tls;
  return connectTls(
    {
      ...{ host, port, cert, key, minVersion: 'TLSv1.3' },
      ...(ca === undefined ? { rejectUnauthorized: false } : { ca, rejectUnauthorized: true }),
      // The handshake of the link names the node and proves it.
      checkServerIdentity: () => undefined,
    },
    onReady,
  );
}

/** `onSocket` gets sockets on which bytes may be sent; `onConnection` every connection before. */
export function createListener(
  { tls }: Transport,
  onConnection: (socket: Socket) => void,
  onSocket: (socket: Socket) => void,
): Server {
  if (tls === undefined)
    return createServer({ noDelay: true }, (socket) => {
      onConnection(socket);
      if (!socket.destroyed) onSocket(socket);
    });
  const { cert, key, ca } = tls;
  const server = createTlsServer({
    ...{ cert, key, minVersion: 'TLSv1.3', handshakeTimeout: TLS_HANDSHAKE_MS },
    ...(ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true }),
  });
  server.on('connection', onConnection);
  server.on('secureConnection', (socket: TLSSocket) => onSocket(socket));
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  return server;
}
