/**
 * Bounds what the kernel takes from a client ahead of the gateway. uWebSockets.js reads a connection until a read comes
 * back short, whatever was paused meanwhile; a buffer that the kernel grows to megabytes is filled as fast as it is
 * read, and 100 MiB of one upload then arrive within one turn of the event loop. A listener with a receive buffer of
 * its own passes it on to its connections, and a read of all that it holds is a short one (docs/decisions/0065). Neither
 * Node nor uWebSockets.js sets this option, so koffi does.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Of Linux: <asm-generic/socket.h>. */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
/** Connections of either family, one a line; the same in every version of Linux. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const DESCRIPTORS = '/proc/self/fd';
/** In the tables' state column: LISTEN. */
const LISTENS = '0A';

/**
 * For the connections that the listener on `port` accepts from now on, in bytes; the kernel doubles it, for its own
 * records, and cuts it at `net.core.rmem_max`. Resolves with what is in the way, where something is; the gateway then
 * serves all the same.
 */
export async function boundReceiveBuffer(port: number, sizeBytes: number): Promise<string | undefined> {
  if (process.platform !== 'linux') return `the sockets of ${process.platform} are not known`;
  try {
    const fd = listenerOf(port);
    if (fd === undefined) return `no listener on port ${port} is ours`;
    const { load, errno } = (await import('koffi')).default;
    const setsockopt = load(null).func('int setsockopt(int, int, int, const int *, uint32_t)');
    const failed = setsockopt(fd, SOL_SOCKET, SO_RCVBUF, [sizeBytes], Int32Array.BYTES_PER_ELEMENT) !== 0;
    return failed ? `setsockopt: error ${errno()}` : undefined;
  } catch (error) {
    // No /proc, or no build of koffi for this machine.
    return error instanceof Error ? error.message : String(error);
  }
}

/** Its descriptor among those of this process. */
function listenerOf(port: number): number | undefined {
  const inodes = new Set(TABLES.flatMap((table) => listenersIn(readFileSync(table, 'latin1'), port)));
  const found = readdirSync(DESCRIPTORS).find((fd) => inodes.has(inodeOf(fd)));
  return found === undefined ? undefined : Number(found);
}

/** Inodes of the sockets that listen on the port, also in other processes. */
function listenersIn(table: string, port: number): string[] {
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/));
  return rows.flatMap(([, local = '', , state, , , , , , inode = '']) =>
    state === LISTENS && Number.parseInt(local.split(':')[1] ?? '', 16) === port ? [inode] : [],
  );
}

/** Empty of what is no socket, or closed by now: reading the folder opens one of its own. */
function inodeOf(fd: string): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${DESCRIPTORS}/${fd}`))?.[1] ?? '';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}
