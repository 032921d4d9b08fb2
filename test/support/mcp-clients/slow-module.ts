/** A backend module that never answers, on a free port of loopback. */
import http from 'node:http';
import { listenOnLoopback } from '../../../kit/http.ts';

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
  const { url } = await listenOnLoopback(server);
  return {
    url,
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
