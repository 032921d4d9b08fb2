/** Picks a port for a program that takes its port as an argument. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the ports that Linux gives to programs that ask for any (32768): none of them takes it meanwhile. */
const FIRST = 20_000;
const END = 32_000;

/** On 127.0.0.1, free when it was looked at. */
export async function pickPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => resolve(true));
    });
    await new Promise((resolve) => probe.close(resolve));
    if (isFree) return port;
  }
}
