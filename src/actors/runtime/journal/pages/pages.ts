/**
 * Pages of the engine's file, read without the engine: it maps the file, and a damaged page can end its process by a
 * signal. The driver of a reading decides how pages are read. Layout: `MDB_page` and `MDB_node` of data version 2.
 */

export const PAGE_BYTES = 4096;
const HEADER_BYTES = 24;
/** Page flags. Higher bits concern pages in memory. */
const FLAG = { branch: 0x01, leaf: 0x02, overflow: 0x04 } as const;
const FLAGS_MASK = 0x7f;
const PAGE_AT = { number: 0, transaction: 8, flags: 18, lower: 20, upper: 22, pages: 20 } as const;
/** A node: size of the value or number of the child, flags, size of the key, key, value. */
const NODE_HEADER_BYTES = 8;
const NODE_AT = { size: 0, flags: 4, keyBytes: 6 } as const;
/** Node flags: the value is on pages of its own, the value is a tree. */
const BIG = 0x01;
const TREE = 0x02;
/** Bytes that locate a value on pages of its own: page, transaction, number of pages. */
const BIG_BYTES = 24;
/** `MDB_db`. */
const TREE_BYTES = 48;
/** "No page": the root of an empty tree. */
const NO_PAGE = 2n ** 64n - 1n;

export interface PagesWanted {
  readonly page: number;
  readonly pages: number;
}
/** Asks for pages, and continues with their bytes: fewer where the file cannot be read. */
export type PageReading<T> = Generator<PagesWanted, T, Buffer>;

export interface Tree {
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  readonly overflowPages: number;
  readonly entries: number;
  /** Undefined: empty. */
  readonly root: number | undefined;
}

/** One commit: the trees as it left them. */
export interface Snapshot {
  readonly transaction: number;
  readonly lastPage: number;
  readonly free: Tree;
  readonly main: Tree;
}

/** Keys from `low` on, below `high`; undefined: no end. */
export interface KeyRange {
  readonly low: Uint8Array | undefined;
  readonly high: Uint8Array | undefined;
}

/** A page that is not what the engine wrote. */
export class DamagedPage extends Error {
  readonly page: number;

  constructor(page: number, reason: string) {
    super(`page ${page} is damaged: ${reason}`);
    this.name = 'DamagedPage';
    this.page = page;
  }
}

interface TreeVisitor {
  /** First and last key; absent: no end. */
  readonly from?: Uint8Array | undefined;
  readonly until?: Uint8Array | undefined;
  /** False: the values of rows on pages of their own are not read. */
  readonly withValues: boolean;
  /** Keys are integers, whose bytes have another order. */
  readonly integerKeys?: boolean;
  /** A row; `isTree`: its value is a sub-database. The bytes are valid until it returns. */
  row(key: Buffer, value: Buffer, isTree: boolean, range: KeyRange): void;
  /** Rows of the range may be missing. */
  fault(damage: DamagedPage, range: KeyRange): void;
  /** Called for all pages of the tree. Returns why they cannot be of it. */
  use?(page: number, pages: number): string | undefined;
}

/** Reads the tree of a meta page or of the value of a sub-database; the offset is that of `MDB_db`. */
export function readTree(bytes: Buffer, at = 0): Tree {
  const root = bytes.readBigUInt64LE(at + 40);
  return {
    depth: bytes.readUInt16LE(at + 6),
    branchPages: numberAt(bytes, at + 8),
    leafPages: numberAt(bytes, at + 16),
    overflowPages: numberAt(bytes, at + 24),
    entries: numberAt(bytes, at + 32),
    root: root === NO_PAGE ? undefined : Number(root),
  };
}

/** The tree of a sub-database; undefined where the value is none. */
export function treeOf(value: Buffer): Tree | undefined {
  return value.length === TREE_BYTES ? readTree(value) : undefined;
}

function numberAt(bytes: Buffer, at: number): number {
  return Number(bytes.readBigUInt64LE(at));
}

/** A walk over one tree in the order of its keys. */
export class TreeWalk {
  readonly #snapshot: Snapshot;
  readonly #tree: Tree;
  readonly #visitor: TreeVisitor;
  #branchPages = 0;
  #leafPages = 0;
  #overflowPages = 0;
  rows = 0;

  constructor(snapshot: Snapshot, tree: Tree, visitor: TreeVisitor) {
    this.#snapshot = snapshot;
    this.#tree = tree;
    this.#visitor = visitor;
  }

  *run(): PageReading<void> {
    const { root } = this.#tree;
    if (root !== undefined) yield* this.#page(root, 1, { low: undefined, high: undefined });
  }

  /** After a whole walk: what was found differs from what was written. */
  *differences(): Iterable<string> {
    const { entries, branchPages, leafPages, overflowPages } = this.#tree;
    if (this.rows !== entries) yield `${this.rows} rows are found, ${entries} were written`;
    const found = this.#branchPages + this.#leafPages + this.#overflowPages;
    const written = branchPages + leafPages + overflowPages;
    if (found !== written) yield `${found} pages are found, ${written} were written`;
  }

  *#page(page: number, level: number, range: KeyRange): PageReading<void> {
    const isLeaf = level === this.#tree.depth;
    const taken = this.#visitor.use?.(page, 1);
    if (taken !== undefined) {
      this.#visitor.fault(new DamagedPage(page, taken), range);
      return;
    }
    if (isLeaf) this.#leafPages += 1;
    else this.#branchPages += 1;
    const bytes = yield { page, pages: 1 };
    const fault = pageFault(bytes, page, isLeaf ? FLAG.leaf : FLAG.branch, this.#snapshot);
    if (fault !== undefined) {
      this.#visitor.fault(new DamagedPage(page, fault), range);
      return;
    }
    const nodes = nodesOf(bytes, isLeaf);
    if (nodes === undefined) {
      this.#visitor.fault(new DamagedPage(page, 'a row lies outside of it'), range);
      return;
    }
    if (this.#visitor.integerKeys !== true) this.#judgeOrder(nodes, page, isLeaf, range);
    if (isLeaf) yield* this.#rows(nodes, range);
    else yield* this.#children(nodes, level, range);
  }

  *#children(nodes: readonly Node[], level: number, range: KeyRange): PageReading<void> {
    const { from, until } = this.#visitor;
    for (const [at, { child, key }] of nodes.entries()) {
      const high = nodes[at + 1]?.key ?? range.high;
      if (from !== undefined && high !== undefined && Buffer.compare(high, from) <= 0) continue;
      if (until !== undefined && at > 0 && Buffer.compare(key, until) > 0) return;
      yield* this.#page(child, level + 1, { low: at === 0 ? range.low : key, high });
    }
  }

  *#rows(nodes: readonly Node[], range: KeyRange): PageReading<void> {
    const { from, until } = this.#visitor;
    for (const node of nodes) {
      if (from !== undefined && Buffer.compare(node.key, from) < 0) continue;
      if (until !== undefined && Buffer.compare(node.key, until) > 0) return;
      this.rows += 1;
      const value = node.isBig ? yield* this.#bigValue(node, range) : node.value;
      if (value !== undefined) this.#visitor.row(node.key, value, node.isTree, range);
    }
  }

  *#bigValue({ value, size }: Node, range: KeyRange): PageReading<Buffer | undefined> {
    const page = numberAt(value, 0);
    const pages = Math.floor((HEADER_BYTES - 1 + size) / PAGE_BYTES) + 1;
    const fail = (reason: string) => this.#visitor.fault(new DamagedPage(page, reason), range);
    const taken = this.#visitor.use?.(page, pages);
    if (taken !== undefined) return fail(taken) as undefined;
    this.#overflowPages += pages;
    const first = yield { page, pages: 1 };
    const fault = pageFault(first, page, FLAG.overflow, this.#snapshot);
    if (fault !== undefined) return fail(fault) as undefined;
    if (first.readUInt32LE(PAGE_AT.pages) !== pages) return fail('it has another length') as undefined;
    if (!this.#visitor.withValues) return first.subarray(HEADER_BYTES);
    if (pages === 1) return first.subarray(HEADER_BYTES, HEADER_BYTES + size);
    const whole = yield { page, pages };
    if (whole.length < pages * PAGE_BYTES) return fail('it cannot be read') as undefined;
    return whole.subarray(HEADER_BYTES, HEADER_BYTES + size);
  }

  /** Keys rise, within the range that the page above names. The first key of a branch is not used. */
  #judgeOrder(nodes: readonly Node[], page: number, isLeaf: boolean, range: KeyRange): void {
    let { low, high } = range;
    let last = low;
    let fault: string | undefined;
    for (const { key } of isLeaf ? nodes : nodes.slice(1)) {
      if (last !== undefined && Buffer.compare(last, key) > (isLeaf && last === low ? 0 : -1))
        fault = 'its rows are not in order';
      if (range.high !== undefined && Buffer.compare(key, range.high) >= 0)
        fault = 'it has rows of another page';
      if (fault !== undefined && low !== undefined && Buffer.compare(key, low) < 0) low = key;
      if (fault !== undefined && high !== undefined && Buffer.compare(key, high) >= 0)
        high = Buffer.concat([key, Buffer.alloc(1)]);
      last = key;
    }
    if (fault !== undefined) this.#visitor.fault(new DamagedPage(page, fault), { low, high });
  }
}

/** The value of a row; undefined where there is none. Throws `DamagedPage`. */
export function* findRow(snapshot: Snapshot, tree: Tree, key: Uint8Array): PageReading<Buffer | undefined> {
  let found: Buffer | undefined;
  const walk = new TreeWalk(snapshot, tree, {
    from: key,
    until: key,
    withValues: true,
    row(_key, value) {
      found = value;
    },
    fault(damage) {
      throw damage;
    },
  });
  yield* walk.run();
  return found;
}

function pageFault(bytes: Buffer, page: number, flag: number, snapshot: Snapshot): string | undefined {
  if (bytes.length < PAGE_BYTES) return 'it cannot be read';
  if (numberAt(bytes, PAGE_AT.number) !== page) return 'it names another page';
  if (numberAt(bytes, PAGE_AT.transaction) > snapshot.transaction) return 'it is of a later commit';
  if ((bytes.readUInt16LE(PAGE_AT.flags) & FLAGS_MASK) !== flag) return 'it is of another kind';
  if (flag === FLAG.overflow) return undefined;
  const lower = bytes.readUInt16LE(PAGE_AT.lower);
  const upper = bytes.readUInt16LE(PAGE_AT.upper);
  const isSound = lower > 0 && lower % 2 === 0 && lower <= upper && upper <= PAGE_BYTES - HEADER_BYTES;
  return isSound ? undefined : 'its bounds are wrong';
}

interface Node {
  readonly key: Buffer;
  /** Page below, in a branch. */
  readonly child: number;
  /** Value in a leaf, or its location. */
  readonly value: Buffer;
  readonly size: number;
  readonly isBig: boolean;
  readonly isTree: boolean;
}

/** Undefined where a node lies outside of the page. */
function nodesOf(bytes: Buffer, isLeaf: boolean): Node[] | undefined {
  const count = bytes.readUInt16LE(PAGE_AT.lower) >> 1;
  const start = HEADER_BYTES + bytes.readUInt16LE(PAGE_AT.upper);
  const nodes: Node[] = [];
  for (let index = 0; index < count; index += 1) {
    const at = HEADER_BYTES + bytes.readUInt16LE(HEADER_BYTES + 2 * index);
    const keyAt = at + NODE_HEADER_BYTES;
    if (at < start || keyAt > PAGE_BYTES) return undefined;
    const size = bytes.readUInt32LE(at + NODE_AT.size);
    const flags = bytes.readUInt16LE(at + NODE_AT.flags);
    const valueAt = keyAt + bytes.readUInt16LE(at + NODE_AT.keyBytes);
    const isBig = isLeaf && (flags & BIG) !== 0;
    const end = valueAt + (isLeaf ? (isBig ? BIG_BYTES : size) : 0);
    if (end > PAGE_BYTES) return undefined;
    nodes.push({
      key: bytes.subarray(keyAt, valueAt),
      child: isLeaf ? 0 : size + flags * 2 ** 32,
      value: bytes.subarray(valueAt, end),
      size,
      isBig,
      isTree: isLeaf && (flags & TREE) !== 0,
    });
  }
  return nodes;
}
