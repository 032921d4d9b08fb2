/**
 * The calls that `strace -f -xx` wrote, in time. A call that another thread interrupts takes two lines, so each call has
 * a begin and, unless the log ends before, an end.
 */

/** Every call that can change what a file system holds, or take away the means to see it. `?`: not on every machine. */
const CALLS = [
  ['open', 'openat', 'openat2', 'creat', 'close', 'dup', 'dup2', 'dup3', 'fcntl', 'lseek'],
  ['write', 'writev', 'pwrite64', 'pwritev', 'pwritev2', 'ftruncate', 'truncate', 'fallocate'],
  ['copy_file_range', 'sendfile', 'splice', 'mmap', 'msync', 'io_uring_setup', 'io_submit'],
  ['fsync', 'fdatasync', 'sync', 'syncfs', 'sync_file_range', 'rename', 'renameat', 'renameat2'],
  ['link', 'linkat', 'symlink', 'symlinkat', 'unlink', 'unlinkat', 'mkdir', 'mkdirat', 'rmdir'],
].flat();

/** Longer than any one write: what strace cuts short cannot be rebuilt. */
const STRING_BYTES_MAX = 4 * 1024 * 1024;

/** The command that traces a program into a file; the program's own words follow it. */
export function straceTo(file: string): string[] {
  const trace = `trace=${CALLS.map((name) => `?${name}`).join(',')}`;
  return [
    'strace',
    '-f',
    '-qq',
    '-xx',
    '-s',
    String(STRING_BYTES_MAX),
    '-e',
    'signal=none',
    '-e',
    trace,
    '-o',
    file,
  ];
}

export interface Call {
  readonly name: string;
  /** Arguments as strace writes them, between the parentheses. */
  readonly args: string;
  /** Undefined while it is under way. */
  result: number | undefined;
}

export interface Moment {
  readonly phase: 'begin' | 'end';
  readonly call: Call;
}

/** The moments in order. Throws on a line that it does not know. */
export function parseTrace(log: string): Moment[] {
  const moments: Moment[] = [];
  const underWay = new Map<string, Call>();
  for (const line of log.split('\n')) {
    const [, thread = '', text = ''] = /^(\d+) +(.*)$/s.exec(line) ?? [];
    if (text === '' || text.startsWith('+++')) continue;
    if (text.startsWith('<... ')) {
      const call = underWay.get(thread);
      if (call === undefined) throw new Error(`a call continues that never began: ${shortened(line)}`);
      underWay.delete(thread);
      call.result = endOf(text).result;
      moments.push({ phase: 'end', call });
      continue;
    }
    const open = text.indexOf('(');
    if (open < 0) throw new Error(`no call: ${shortened(line)}`);
    const name = text.slice(0, open);
    const cut = / *<unfinished \.\.\.>$/.exec(text.slice(-40))?.[0];
    if (cut !== undefined) {
      const call: Call = { name, args: text.slice(open + 1, -cut.length), result: undefined };
      underWay.set(thread, call);
      moments.push({ phase: 'begin', call });
      continue;
    }
    const { at, result } = endOf(text);
    const call: Call = { name, args: text.slice(open + 1, at), result };
    moments.push({ phase: 'begin', call }, { phase: 'end', call });
  }
  return moments;
}

/** Where the arguments end, and the returned number; a process that is killed in a call leaves `?`, which is none. */
function endOf(text: string): { readonly at: number; readonly result: number | undefined } {
  const start = Math.max(0, text.length - 200);
  const found = /\) += (-?\d+|0x[0-9a-f]+|\?)(?: [^=]*)?$/.exec(text.slice(start));
  if (found === null) throw new Error(`no result: ${shortened(text)}`);
  return { at: start + found.index, result: found[1] === '?' ? undefined : Number(found[1]) };
}

/** Bytes of all strings among the arguments, in order. Throws when strace has cut one short. */
export function stringsOf({ name, args }: Call): Buffer[] {
  const strings: Buffer[] = [];
  for (let open = args.indexOf('"'); open >= 0; open = args.indexOf('"', open)) {
    const close = args.indexOf('"', open + 1);
    if (close < 0 || args.startsWith('...', close + 1)) throw new Error(`${name}: a string was cut short`);
    strings.push(Buffer.from(args.slice(open + 1, close).replaceAll('\\x', ''), 'hex'));
    open = close + 1;
  }
  return strings;
}

/** The arguments, split, without the text of strings. */
export function wordsOf({ args }: Call): string[] {
  return args
    .replace(/"[^"]*"/g, '""')
    .split(',')
    .map((word) => word.trim());
}

function shortened(line: string): string {
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
}
