/**
 * Records of one account as an immutable list in the order of their ids. An array copies fastest at a login; look-ups
 * use binary search. An object keyed by id would have a shape of its own and cost half a kilobyte for each account.
 */
interface Identified {
  /** Tick, decimal. */
  readonly id: string;
}

/** Undefined for an id that is not there. */
export function findById<T extends Identified>(list: readonly T[], id: string): T | undefined {
  const record = list[indexOfId(list, id)];
  return record?.id === id ? record : undefined;
}

/** Adds a record with the newest id, or replaces the one with the same id. */
export function withRecord<T extends Identified>(list: readonly T[], record: T): readonly T[] {
  const index = indexOfId(list, record.id);
  if (list[index]?.id === record.id) return list.with(index, record);
  // Concatenated: a spread leaves room for sixteen more.
  return index === list.length ? list.concat([record]) : list.toSpliced(index, 0, record);
}

export function withoutIds<T extends Identified>(list: readonly T[], ids: readonly string[]): readonly T[] {
  if (ids.length === 1) {
    const index = indexOfId(list, ids[0] ?? '');
    return list[index]?.id === ids[0] ? list.toSpliced(index, 1) : list;
  }
  const leaving = new Set(ids);
  return list.filter((record) => !leaving.has(record.id));
}

/** Index of the first record whose id is not below `id`. */
function indexOfId(list: readonly Identified[], id: string): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBelow(list[middle]?.id ?? '', id)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Order of decimal numbers without leading zeros. */
function isBelow(id: string, other: string): boolean {
  return id.length === other.length ? id < other : id.length < other.length;
}
