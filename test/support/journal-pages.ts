/** Pages of a journal's file, to be damaged in place: a gateway may have it open, and maps it. */
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { tableKey } from '../../src/actors/runtime/journal/keys.ts';
import { readHead, taken } from '../../src/actors/runtime/journal/pages/meta-pages.ts';
import { PageFile } from '../../src/actors/runtime/journal/pages/page-file.ts';
import {
  findRow,
  PAGE_BYTES,
  type Snapshot,
  type Tree,
  TreeWalk,
  treeOf,
} from '../../src/actors/runtime/journal/pages/pages.ts';

/** A tree of the newest commit: a table, or the list of free pages. */
export interface StoredTree {
  readonly root: number;
  /** All pages of rows, in order. */
  readonly leaves: readonly number[];
  /** Pages of values that are larger than a page. */
  readonly overflow: readonly number[];
}

export function newestSnapshot(path: string): Snapshot {
  return taken(readHead(path))[0].snapshot;
}

/** `free`: the list of free pages; `main`: that of the tables. */
export function treeAt(path: string, name: string): StoredTree {
  const file = new PageFile(path);
  try {
    const snapshot = newestSnapshot(path);
    const tree = name === 'free' || name === 'main' ? snapshot[name] : namedTree(file, snapshot, name);
    const leaves: number[] = [];
    const overflow: number[] = [];
    let page = 0;
    const walk = new TreeWalk(snapshot, tree, {
      withValues: false,
      integerKeys: name === 'free',
      row: () => {
        if (leaves.at(-1) !== page) leaves.push(page);
      },
      fault(damage) {
        throw damage;
      },
      use(first, pages) {
        if (pages > 1) overflow.push(first);
        else page = first;
        return undefined;
      },
    });
    file.run(walk.run());
    return { root: tree.root ?? 0, leaves, overflow };
  } finally {
    file.close();
  }
}

function namedTree(file: PageFile, snapshot: Snapshot, name: string): Tree {
  const row = file.run(findRow(snapshot, snapshot.main, tableKey(name)));
  const tree = row === undefined ? undefined : treeOf(row);
  if (tree === undefined) throw new Error(`there is no table ${name}`);
  return tree;
}

/** Changes bytes of the file where they are; `offset` counts from the start of the page. */
export function changePage(
  path: string,
  page: number,
  offset: number,
  length: number,
  change: (bytes: Buffer) => void,
): void {
  const file = openSync(path, 'r+');
  try {
    const bytes = Buffer.alloc(length);
    const at = page * PAGE_BYTES + offset;
    readSync(file, bytes, 0, length, at);
    change(bytes);
    writeSync(file, bytes, 0, length, at);
  } finally {
    closeSync(file);
  }
}

export function zeroPage(path: string, page: number): void {
  changePage(path, page, 0, PAGE_BYTES, (bytes) => bytes.fill(0));
}
