/** Removes parts and copies of parts that no upload will ask for again: a crash left them, or a late stream. */
import type { FileKey } from '../../../domain/files/files.ts';
import { parseId } from '../../../domain/ids.ts';
import type { FileCalls, OnLate } from './file-calls.ts';
import { entriesOf, type OwnerFolder, type OwnerFolders } from './owner-folders.ts';
import type { SweepScope } from './port.ts';

/** Names that `partName` makes. */
const PART_NAME = /^([0-9]+)(?:\.([1-9][0-9]{0,15}))?\.part$/;

interface SweepDeps {
  readonly folders: OwnerFolders;
  readonly calls: FileCalls;
  /** An upload has the file, or may have. */
  readonly isWanted: (fileId: string) => boolean;
  readonly isLeftOverCopy: (name: string) => boolean;
  /** False when the part is gone by then. */
  readonly remove: (key: FileKey) => Promise<boolean>;
}

/** Resolves with the number of parts. */
export async function sweepParts(
  deps: SweepDeps,
  scope: SweepScope | undefined,
  late: OnLate,
): Promise<number> {
  const { folders, calls, isWanted, remove } = deps;
  let removed = 0;
  for await (const owner of entriesOf(folders.root, calls, late)) {
    if (!owner.isDirectory() || parseId(owner.name) === undefined) continue;
    if (scope?.includes(owner.name) === false) continue;
    const { parts, copies } = await leftIn(deps, owner.name, scope?.keepSinceMs, late);
    for (const key of parts) if (!isWanted(key.fileId) && (await remove(key))) removed += 1;
    for (const name of copies) await folders.use(owner.name, (folder) => folder.unlink(name), late);
  }
  return removed;
}

/** Those that were last written before `beforeMs`, or all. */
async function leftIn(
  { folders, isLeftOverCopy }: SweepDeps,
  owner: string,
  beforeMs: number | undefined,
  late: OnLate,
): Promise<{ readonly parts: readonly FileKey[]; readonly copies: readonly string[] }> {
  const parts: FileKey[] = [];
  const copies: string[] = [];
  const look = async (folder: OwnerFolder) => {
    for await (const { name } of folder.entries()) {
      const key = partKey(owner, name);
      const isCopy = isLeftOverCopy(name);
      if (key === undefined && !isCopy) continue;
      if (beforeMs !== undefined && (await folder.writtenMs(name)) >= beforeMs) continue;
      if (key === undefined) copies.push(name);
      else parts.push(key);
    }
  };
  await folders.use(owner, look, late);
  return { parts, copies };
}

/** Undefined for the name of anything but a part. */
function partKey(owner: string, name: string): FileKey | undefined {
  const [, id, segment] = PART_NAME.exec(name) ?? [];
  const fileId = parseId(id);
  if (fileId === undefined) return undefined;
  return segment === undefined ? { owner, fileId } : { owner, fileId, segment: Number(segment) };
}
