/** The port that a listener will take, and what is said when there is none. */
import { createServer as createProbe } from 'node:net';

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken',
  EADDRNOTAVAIL: 'the host is not an address of this machine',
  ENOTFOUND: 'the host is not known',
  EACCES: 'the port needs a privilege that this process has not',
};

/** The listener could not be opened: the port is taken, or the host is no address of this machine. */
export class ListenError extends Error {
  readonly host: string;
  readonly port: number;

  constructor(host: string, port: number, code: string) {
    super(`cannot listen on ${host}:${port}: ${LISTEN_REASONS[code] ?? code}`);
    this.name = 'ListenError';
    this.host = host;
    this.port = port;
  }
}

/**
 * The port to listen on; for 0 one that the system picks. uWS binds either exclusively, and then a restart fails for a
 * minute while old connections are in TIME_WAIT, or with SO_REUSEPORT, and then a second process would quietly share
 * the port. So a socket that may reuse an address but not share it tries first; port 0 is made a number here because
 * uWS sets no option at all on it, which a restart on the same port would feel. Rejects with `ListenError`.
 */
export async function findFreePort(host: string, port: number): Promise<number> {
  const probe = createProbe();
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ListenError(host, port, error.code ?? '')),
    );
    probe.listen({ host, port, exclusive: true }, resolve);
  });
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : port;
}
