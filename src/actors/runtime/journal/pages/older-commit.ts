/**
 * Continues from the older of the two newest commits where the meta page of one cannot be read. The pages of that commit
 * are whole: the engine takes pages that it freed into use only two commits later.
 */
import { closeSync, fsyncSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { syncToDisk } from '../file.ts';
import { faultOfCommit } from './commit-fault.ts';
import { META_AT, type MetaPage, readHead } from './meta-pages.ts';
import { PageFile } from './page-file.ts';
import { PAGE_BYTES } from './pages.ts';

interface OlderCommit {
  /** The commit that the journal continues from. */
  readonly transaction: bigint;
  /** Path at which the page that was overwritten is kept. */
  readonly kept: string;
  /** A sentence: which commit is gone. */
  readonly gone: string;
}

/**
 * The two meta pages of a file of which exactly one is bad; undefined where both are good, or both are bad. Of a bad page
 * whose rows can be read, `transaction` is what they say.
 */
export function badPageOf(path: string): { readonly good: MetaPage; readonly bad: MetaPage } | undefined {
  const file = new PageFile(path);
  try {
    const [first, second] = readHead(path).pages.map((page) => judged(file, page)) as [Judged, Judged];
    if (first.isBad === second.isBad) return undefined;
    return first.isBad ? { good: second.page, bad: first.page } : { good: first.page, bad: second.page };
  } finally {
    file.close();
  }
}

interface Judged {
  readonly page: MetaPage;
  readonly isBad: boolean;
}

function judged(file: PageFile, page: MetaPage): Judged {
  if (page.fault !== undefined) return { page, isBad: true };
  const { fault, transaction } = file.run(faultOfCommit(page));
  const written = transaction === undefined ? page : { ...page, transaction: BigInt(transaction) };
  return { page: written, isBad: fault !== undefined };
}

/**
 * Replaces the bad meta page by the good one, as the commit before it, so that the engine chooses the good one. The
 * replaced bytes are kept in a file beside the journal. No other process may have the journal open.
 */
export function useOlderCommit(file: string, good: MetaPage, bad: MetaPage, nowMs: number): OlderCommit {
  const at = bad.page * PAGE_BYTES;
  const kept = `${file}.page${bad.page}-${new Date(nowMs).toISOString().replaceAll(':', '')}`;
  const journal = openSync(file, 'r+');
  try {
    const page = Buffer.alloc(PAGE_BYTES);
    readSync(journal, page, 0, page.length, at);
    writeFileSync(kept, page, { mode: 0o600, flag: 'wx', flush: true });
    syncToDisk(dirname(file));
    readSync(journal, page, 0, page.length, good.page * PAGE_BYTES);
    page.writeBigUInt64LE(BigInt(bad.page), META_AT.pageNumber);
    page.writeBigUInt64LE(good.transaction > 0n ? good.transaction - 1n : 0n, META_AT.transaction);
    writeSync(journal, page, 0, page.length, at);
    fsyncSync(journal);
  } finally {
    closeSync(journal);
  }
  return { transaction: good.transaction, kept, gone: goneOf(good.transaction, bad.transaction) };
}

function goneOf(good: bigint, bad: bigint): string {
  if (bad === good + 1n) return `commit ${bad} is gone`;
  if (bad === good - 1n) return `nothing is gone: the bad page held commit ${bad}`;
  return `commit ${good + 1n} is gone, if the bad page held it`;
}
