/** Ports for programs that take theirs as an argument: one that is free, and the wait until the program listens on it. */
import type { ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { connect } from 'node:net';
import { findFreePort, ListenError } from '../src/io/http/listen/free-port.ts';

/** Ports below those that Linux gives to programs that ask for any (32768): none of them takes it meanwhile. */
const FIRST = 20_000;
const END = 32_000;
const RETRY_MS = 10;

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

/** Asked again until the port takes connections: such a program says nothing when it is ready. Throws when it has ended. */
export async function untilListening(child: ChildProcess, port: number): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1' });
      const end = (open: boolean) => () => {
        socket.destroy();
        setTimeout(() => resolve(open), open ? 0 : RETRY_MS);
      };
      socket.once('connect', end(true)).once('error', end(false));
    });
    if (isOpen) return;
  }
}
