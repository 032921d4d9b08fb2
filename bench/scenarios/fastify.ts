/** @fastify/http-proxy as a peer: it passes every request on to one backend. */
import { startPeer } from '../measure/children.ts';
import type { Bench } from '../scenario.ts';

export async function startFastifyProxy(
  bench: Bench,
  backendUrl: string,
): Promise<{ url: string; pid: number }> {
  const server = await startPeer('fastify-proxy', [backendUrl]);
  bench.onTeardown(() => server.stop());
  return server;
}
