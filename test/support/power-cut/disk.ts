/**
 * A folder as a traced program left it on the disk, call by call: names and files, with what is durable and what a power
 * cut may take back. A name is on the disk when its folder has been synced, and names of one folder get there in order.
 * Anything that cannot be followed, as stores into a mapped file, ends the rebuild.
 */
import { dirname, join } from 'node:path';
import { Inode, type Write } from './inode.ts';
import { type Call, type Moment, stringsOf, wordsOf } from './trace.ts';

interface OpenFile {
  readonly path: string;
  /** Undefined for a folder. */
  readonly inode: Inode | undefined;
  readonly flags: readonly string[];
  offset: number;
}

/**
 * A ring of libuv without SQPOLL carries `epoll_ctl` alone; files go through one with it, which `UV_USE_IO_URING=0` forbids
 * (libuv 1.49 and later, src/unix/linux.c, `uv__use_io_uring`).
 */
const isEpollRing = ({ args }: Call): boolean =>
  /\{flags=/.test(args) && !/\bIORING_SETUP_SQPOLL\b/.test(args);

/** A change of the names in one folder. */
interface Naming extends Write {
  readonly folder: string;
  apply(names: Map<string, Inode | 'folder'>): void;
}

/** Called when the call has ended, and has not failed. */
type Ending = (result: number) => void;

export interface DiskOptions {
  /** The folder that is rebuilt; it may be made by the program. */
  readonly folder: string;
  /** Files whose content is not needed after a power cut, and which may be mapped. */
  readonly ignored: RegExp;
  /** Planted fault: syncs of files and folders say that they were done, and were not. */
  readonly syncsNothing?: boolean;
}

export class TracedDisk {
  readonly #options: DiskOptions;
  readonly #names = new Map<string, Inode | 'folder'>();
  readonly #durable = new Map<string, Inode | 'folder'>();
  /** Folders that the program has made. */
  readonly #made = new Set<string>();
  #namings: Naming[] = [];
  readonly #open = new Map<string, OpenFile>();
  readonly #endings = new Map<Call, Ending>();
  #now = 0;

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  /** Follows the program by one moment. Throws on what cannot be rebuilt. */
  take({ phase, call }: Moment): void {
    this.#now += 1;
    if (phase === 'begin') {
      const ending = this.#begin(call);
      if (ending !== undefined) this.#endings.set(call, ending);
      return;
    }
    const ending = this.#endings.get(call);
    this.#endings.delete(call);
    if (ending === undefined || call.result === undefined) return;
    if (call.result < 0 && !/^(open|mkdir|unlink|close)/.test(call.name))
      throw new Error(`${call.name} failed: ${call.args}`);
    if (call.result >= 0) ending(call.result);
  }

  /** Returns the files that a kill of the program at this moment leaves. */
  whole(): Map<string, Buffer> {
    return this.#files(this.#names, (inode) => inode.whole());
  }

  /** Returns files that may be found when the power comes back; `random` gives numbers from 0 to 1. */
  afterCut(random: () => number): Map<string, Buffer> {
    const names = new Map(this.#durable);
    const kept = random();
    const lost = new Set<string>();
    for (const naming of this.#namings) {
      if (random() >= kept) lost.add(naming.folder);
      if (!lost.has(naming.folder)) naming.apply(names);
    }
    // Whatever lies in a folder that is not there is not there either.
    for (const path of [...names.keys()])
      for (const made of this.#made)
        if (path.startsWith(join(made, '/')) && !names.has(made)) names.delete(path);
    return this.#files(names, (inode) => inode.afterCut(random));
  }

  #begin(call: Call): Ending | undefined {
    const { name } = call;
    if (/^(io_submit|sync|syncfs)$/.test(name) || (name === 'io_uring_setup' && !isEpollRing(call)))
      throw new Error(`${name} cannot be followed`);
    if (/^(open|creat)/.test(name)) return this.#opening(call);
    if (/^(mkdir|rename|link|symlink|unlink|rmdir|truncate)/.test(name)) return this.#naming(call);
    const words = wordsOf(call);
    const descriptor = (name === 'mmap' ? words[4] : words[0]) ?? '';
    const file = this.#open.get(descriptor);
    if (file === undefined) return undefined;
    if (name === 'close') {
      this.#open.delete(descriptor);
      return undefined;
    }
    if (name === 'fcntl' && !/F_DUPFD/.test(call.args)) return undefined;
    if (this.#options.ignored.test(file.path)) return undefined;
    if (name === 'mmap' && !/PROT_WRITE.*MAP_SHARED/.test(call.args)) return undefined;
    if (name === 'lseek')
      return (result) => {
        file.offset = result;
      };
    if (name === 'fsync' || name === 'fdatasync') return this.#sync(file);
    if (name === 'ftruncate' && file.inode !== undefined) return this.#cut(file.inode, Number(words[1]));
    if (/^p?writev?(64)?$/.test(name) && file.inode !== undefined)
      return this.#write(file, file.inode, call, words);
    throw new Error(`${name} of ${file.path} cannot be followed`);
  }

  #opening(call: Call): Ending | undefined {
    const path = this.#resolve(stringsOf(call)[0]?.toString() ?? '');
    const words = wordsOf(call);
    const flags = (words[words.indexOf('""') + 1] ?? '').split('|');
    if (!this.#concerns(path)) return undefined;
    return (result) => {
      const known = this.#names.get(path);
      if (flags.includes('O_TRUNC') && known !== undefined) throw new Error(`${path} was cut to nothing`);
      const isFolder = known === 'folder' || flags.includes('O_DIRECTORY') || !this.#inside(path);
      let inode = known === 'folder' ? undefined : known;
      if (inode === undefined && !isFolder) {
        const made = new Inode();
        inode = made;
        this.#change(path, (names) => names.set(path, made));
      }
      this.#open.set(String(result), { path, inode, flags, offset: 0 });
    };
  }

  #naming(call: Call): Ending | undefined {
    const paths = stringsOf(call).map((path) => this.#resolve(String(path)));
    const [path = '', to = ''] = paths;
    if (!paths.some((each) => this.#concerns(each))) return undefined;
    const kind = call.name.replace(/at2?$/, '');
    if (kind === 'mkdir')
      return () => {
        this.#made.add(path);
        this.#change(path, (names) => names.set(path, 'folder'));
      };
    if (kind === 'unlink') return () => this.#change(path, (names) => names.delete(path));
    if (kind !== 'rename' || dirname(path) !== dirname(to))
      throw new Error(`${call.name} of ${path} cannot be followed`);
    return () =>
      this.#change(path, (names) => {
        const moved = names.get(path);
        names.delete(path);
        if (moved !== undefined) names.set(to, moved);
      });
  }

  #change(path: string, apply: Naming['apply']): void {
    this.#namings.push({ folder: dirname(path), apply, endedAt: this.#now });
    apply(this.#names);
  }

  #sync({ path, inode }: OpenFile): Ending {
    const beganAt = this.#now;
    return () => {
      if (this.#options.syncsNothing === true) return;
      inode?.sync(beganAt);
      if (inode !== undefined) return;
      const isDurable = ({ folder, endedAt }: Naming) =>
        folder === path && endedAt !== undefined && endedAt < beganAt;
      for (const naming of this.#namings) if (isDurable(naming)) naming.apply(this.#durable);
      this.#namings = this.#namings.filter((naming) => !isDurable(naming));
    };
  }

  #write(file: OpenFile, inode: Inode, call: Call, words: readonly string[]): Ending {
    const bytes = Buffer.concat(stringsOf(call));
    const isPositioned = call.name.startsWith('p');
    const isAppending = file.flags.includes('O_APPEND');
    const offset = isAppending ? inode.sizeBytes : isPositioned ? Number(words.at(-1)) : file.offset;
    const write: Write = { endedAt: undefined };
    inode.write(write, offset, bytes);
    return (result) => {
      if (result !== bytes.length)
        throw new Error(`${file.path}: ${result} of ${bytes.length} bytes written`);
      if (isAppending && inode.sizeBytes !== offset + bytes.length)
        throw new Error(`${file.path}: two writes to its end at once`);
      if (!isPositioned) file.offset = offset + bytes.length;
      write.endedAt = this.#now;
      if (
        file.flags.some((flag) => flag === 'O_DSYNC' || flag === 'O_SYNC') &&
        this.#options.syncsNothing !== true
      )
        inode.settle(write);
    };
  }

  #cut(inode: Inode, sizeBytes: number): Ending {
    const write: Write = { endedAt: undefined };
    inode.cut(write, sizeBytes);
    return () => {
      write.endedAt = this.#now;
    };
  }

  /** A name in a folder that is open: `/proc/self/fd/N/name`. */
  #resolve(path: string): string {
    const [, descriptor = '', name = ''] = /^\/proc\/self\/fd\/(\d+)\/(.+)$/.exec(path) ?? [];
    const folder = this.#open.get(descriptor)?.path;
    return folder === undefined ? path : join(folder, name);
  }

  #inside(path: string): boolean {
    return path.startsWith(join(this.#options.folder, '/'));
  }

  /** The folder itself, what is in it, and the folder that holds its name. */
  #concerns(path: string): boolean {
    const { folder } = this.#options;
    return path === folder || path === dirname(folder) || this.#inside(path);
  }

  #files(names: ReadonlyMap<string, Inode | 'folder'>, read: (inode: Inode) => Buffer): Map<string, Buffer> {
    const files = new Map<string, Buffer>();
    for (const [path, inode] of names)
      if (inode !== 'folder' && !this.#options.ignored.test(path)) files.set(path, read(inode));
    return files;
  }
}
