/**
 * Sets options of this process's listening sockets that neither Node nor uWebSockets.js can set. Linux only; koffi makes
 * the system calls.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Linux, <asm-generic/socket.h>. */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const SO_ATTACH_REUSEPORT_CBPF = 51;
/** Classic BPF, <linux/bpf_common.h>: BPF_RET | BPF_K returns a constant. */
const BPF_RETURN = 6;
/** TCP sockets of both families, one per line; the format is stable in Linux. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const DESCRIPTORS = '/proc/self/fd';
/** LISTEN in the state column of these tables. */
const LISTENS = '0A';

/** Sets an option of one socket; returns errno, or 0. */
type SetOption = (fd: number) => number;

/** Sets the receive buffer of connections accepted from now on. Resolves with the reason if it cannot. */
export function setReceiveBuffer(port: number, sizeBytes: number): Promise<string | undefined> {
  return setOnAll(port, ({ load, errno }) => {
    const set = load(null).func('int setsockopt(int, int, int, const int *, uint32_t)');
    return (fd) =>
      set(fd, SOL_SOCKET, SO_RCVBUF, [sizeBytes], Int32Array.BYTES_PER_ELEMENT) === 0 ? 0 : errno();
  });
}

/**
 * Makes the kernel give new connections to the newest socket of the port (socket(7), SO_ATTACH_REUSEPORT_CBPF). Resolves
 * with the reason if it cannot; connections are then distributed.
 */
export function steerToNewest(port: number): Promise<string | undefined> {
  return setOnAll(port, ({ load, errno, pointer, struct, sizeof }, count) => {
    const filter = struct({ code: 'uint16_t', jt: 'uint8_t', jf: 'uint8_t', k: 'uint32_t' });
    const program = struct({ len: 'uint16_t', filter: pointer(filter) });
    const set = load(null).func('setsockopt', 'int', ['int', 'int', 'int', pointer(program), 'uint32_t']);
    // The kernel numbers the sockets of a port in the order in which they began to listen.
    const value = { len: 1, filter: [{ code: BPF_RETURN, jt: 0, jf: 0, k: count - 1 }] };
    return (fd) =>
      set(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, value, sizeof(program)) === 0 ? 0 : errno();
  });
}

type Koffi = typeof import('koffi')['default'];

async function setOnAll(
  port: number,
  prepare: (koffi: Koffi, count: number) => SetOption,
): Promise<string | undefined> {
  if (process.platform !== 'linux') return `the sockets of ${process.platform} are not known`;
  try {
    const fds = listenersOn(port);
    if (fds.length === 0) return `no listener on port ${port} is ours`;
    const set = prepare((await import('koffi')).default, fds.length);
    const error = fds.map(set).find((code) => code !== 0);
    return error === undefined ? undefined : `setsockopt: error ${error}`;
  } catch (error) {
    // No /proc, or no build of koffi for this machine.
    return error instanceof Error ? error.message : String(error);
  }
}

/** Descriptors of this process's listening sockets. */
function listenersOn(port: number): number[] {
  const inodes = new Set(TABLES.flatMap((table) => listenersIn(readFileSync(table, 'latin1'), port)));
  return readdirSync(DESCRIPTORS)
    .filter((fd) => inodes.has(inodeOf(fd)))
    .map(Number);
}

/** Inodes of the sockets that listen on the port, in any process. */
function listenersIn(table: string, port: number): string[] {
  const lines = table.split('\n').map((line) => line.trim().split(/\s+/));
  return lines.flatMap(([, local = '', , state, , , , , , inode = '']) =>
    state === LISTENS && Number.parseInt(local.split(':')[1] ?? '', 16) === port ? [inode] : [],
  );
}

/** Empty if it is no socket or is closed: reading the folder opens a descriptor itself. */
function inodeOf(fd: string): string {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${DESCRIPTORS}/${fd}`))?.[1] ?? '';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}
