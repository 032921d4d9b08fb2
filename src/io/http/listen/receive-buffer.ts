/**
 * Bounds what the kernel takes from a client ahead of the gateway. uWebSockets.js reads a connection until a read comes
 * back short, whatever was paused meanwhile; a buffer that the kernel grows to megabytes is filled as fast as it is
 * read, and 100 MiB of one upload then arrive within one turn of the event loop. A listener with a receive buffer of
 * its own passes it on to its connections, and a read of all that it holds is a short one (docs/optimizations.md).
 */
import { setReceiveBuffer } from './listening-sockets.ts';

/**
 * For the connections that listeners on `port` accept from now on, in bytes; the kernel doubles it, for its own records,
 * and cuts it at `net.core.rmem_max`. Resolves with what is in the way, where something is; the gateway then serves all
 * the same.
 */
export function boundReceiveBuffer(port: number, sizeBytes: number): Promise<string | undefined> {
  return setReceiveBuffer(port, sizeBytes);
}
