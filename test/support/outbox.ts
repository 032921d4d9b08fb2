/** One-time codes that the chat module of the sandbox has delivered. */
import { request } from '../../kit/agent.ts';

/** A code that has not arrived by then is lost; the first retry is after 2 s. Milliseconds. */
const ARRIVAL_MAX_MS = 20_000;

/** Polls the outbox until it has the code for this address; `former`: a code that is not meant. */
export async function arrival(
  sandbox: string | undefined,
  address: string,
  former?: string,
): Promise<string> {
  const endMs = performance.now() + ARRIVAL_MAX_MS;
  while (performance.now() < endMs) {
    const { json } = await request(`${sandbox}/sandbox/v1/outbox`);
    const deliveries = json['result']?.['deliveries'] as unknown as { address: string; code: string }[];
    const found = deliveries.findLast((delivery) => delivery.address === address);
    if (found !== undefined && found.code !== former) return found.code;
  }
  throw new Error(`no code for ${address}`);
}
