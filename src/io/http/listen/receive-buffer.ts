/**
 * Bounds the kernel's receive buffer of each connection. uWebSockets.js reads until a read is short, even when paused, so
 * that a growing buffer delivers 100 MiB in one event-loop tick (docs/optimizations.md).
 */
import { setReceiveBuffer } from './listening-sockets.ts';

/**
 * Applies to connections that listeners on `port` accept from now on. The kernel doubles `sizeBytes` and caps it at
 * `net.core.rmem_max`. Resolves with the reason if it cannot; the gateway then serves without it.
 */
export function boundReceiveBuffer(port: number, sizeBytes: number): Promise<string | undefined> {
  return setReceiveBuffer(port, sizeBytes);
}
