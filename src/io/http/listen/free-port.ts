/** Reserves the ports of listeners, and reports ports that cannot be opened. */
import { createServer as createProbe, type Server as Probe } from 'node:net';

const LISTEN_REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is taken; --port and --internal-port choose others',
  EADDRNOTAVAIL: 'the host is not an address of this machine',
  ENOTFOUND: 'the host is not known',
  EACCES: 'the port needs a privilege that this process has not',
};

/** A listener could not be opened. */
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
 * The port to listen on; for 0 a free one. An exclusive bind of uWS fails after a restart (TIME_WAIT), and SO_REUSEPORT
 * would share the port with another process: a probe with neither option tries the port first. Rejects with `ListenError`.
 */
export async function findFreePort(host: string, port: number): Promise<number> {
  const probe = await openProbe(host, port);
  const found = portOf(probe);
  await close(probe);
  return found;
}

/** A port that a start has tried and will listen on at its end. */
interface ReservedPort {
  readonly port: number;
  /** Call it right before listening. Rejects with `ListenError` if the port was taken meanwhile. */
  claim(): Promise<void>;
}

/**
 * Tries all ports together, so that duplicates are refused. A given port is released, so that connections during the start
 * are refused (docs/decisions/0083); one that the system picked stays bound. Rejects with `ListenError`.
 */
export async function reservePorts(
  wanted: readonly { readonly host: string; readonly port: number }[],
): Promise<ReservedPort[]> {
  const probes: Probe[] = [];
  try {
    for (const { host, port } of wanted) probes.push(await openProbe(host, port));
  } catch (error) {
    await Promise.all(probes.map(close));
    throw error;
  }
  return Promise.all(
    probes.map(async (probe, index) => {
      const { host = '', port = 0 } = wanted[index] ?? {};
      const found = portOf(probe);
      if (port === 0) return { port: found, claim: () => close(probe) };
      await close(probe);
      return {
        port: found,
        async claim() {
          await findFreePort(host, port);
        },
      };
    }),
  );
}

async function openProbe(host: string, port: number): Promise<Probe> {
  const probe = createProbe((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(new ListenError(host, port, error.code ?? '')),
    );
    probe.listen({ host, port, exclusive: true }, resolve);
  });
  return probe.unref();
}

function portOf(probe: Probe): number {
  const address = probe.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function close(probe: Probe): Promise<void> {
  await new Promise((resolve) => probe.close(resolve));
}
