/** A backend module that never answers, on a free port of loopback. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';

export interface SlowModule {
  readonly url: string;
  /** The next call that arrives, and what resolves when its connection closes. */
  next(): Promise<{ readonly closed: Promise<void> }>;
  close(): void;
}

export async function startSlowModule(): Promise<SlowModule> {
  let arrived: (call: { closed: Promise<void> }) => void = () => undefined;
  const server = http.createServer((_request, response) => {
    const closed = new Promise<void>((resolve) => response.once('close', resolve));
    arrived({ closed });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    next: () =>
      new Promise((resolve) => {
        arrived = resolve;
      }),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
