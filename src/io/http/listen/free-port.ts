/** The ports that listeners will take, and what is said when there are none. */
import { createServer as createProbe, type Server as Probe } from 'node:net';

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
  const probe = await openProbe(host, port);
  const found = portOf(probe);
  await close(probe);
  return found;
}

/** A port between the beginning of a start, which tries it, and the end, which listens on it. */
interface ReservedPort {
  readonly port: number;
  /** To be called right before the port is listened on. Rejects with `ListenError` when it has been taken meanwhile. */
  claim(): Promise<void>;
}

/**
 * Tries all of them at once, so that two that are the same are refused. A given port is let go of: whoever connects to it
 * during a start is to be refused (docs/decisions/0114). One that the system picked stays taken; nobody knows it yet.
 * Rejects with `ListenError`.
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
