/** Keeps a value as the newest of a map. The oldest entry leaves beyond `max`, so that no cache grows without a bound. */
export function keepNewest<Key, Value>(entries: Map<Key, Value>, max: number, key: Key, value: Value): void {
  entries.delete(key);
  entries.set(key, value);
  if (entries.size <= max) return;
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
