/** Searches all rows of a journal on disk, as they are stored, for texts that must not be there. */
import { open } from 'lmdb';

/** The texts that stand in a row or in its key, each with the table. A running gateway may have the journal open. */
export async function textsInRows(dataPath: string, texts: readonly string[]): Promise<string[]> {
  const environment = open({ path: dataPath, noSubdir: false, maxDbs: 64, readOnly: true });
  const found: string[] = [];
  let rows = 0;
  for (const name of [...environment.getKeys({})].map(String)) {
    if (name === 'owner') continue;
    const table = environment.openDB(name, { encoding: 'binary' });
    for (const { key, value } of table.getRange({})) {
      rows += 1;
      const row = Buffer.concat([Buffer.from(String(key)), value]);
      for (const text of texts) if (row.includes(text)) found.push(`${name}: ${text}`);
    }
  }
  await environment.close();
  if (rows === 0) throw new Error('the journal has no rows');
  return found;
}
