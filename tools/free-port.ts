/** Picks a port for a program that takes its port as an argument. */
import { randomInt } from 'node:crypto';
import { findFreePort, ListenError } from '../src/io/http/listen/free-port.ts';

/** Below the ports that Linux gives to programs that ask for any (32768): none of them takes it meanwhile. */
const FIRST = 20_000;
const END = 32_000;

/** On 127.0.0.1, free when it was looked at. */
export async function pickPort(): Promise<number> {
  for (;;) {
    try {
      return await findFreePort('127.0.0.1', randomInt(FIRST, END));
    } catch (error) {
      if (!(error instanceof ListenError)) throw error;
    }
  }
}
