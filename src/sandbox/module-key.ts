/**
 * The key of the stand-in modules: whoever may read the data folder can push events as one of them, exactly as a real
 * module does. Made once, readable by its owner alone.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const KEY_BYTES = 32;

/** The key in `<DataPath>/sandbox/module-key`, made where it is missing. */
export function openModuleKey(dataPath: string): string {
  const folder = join(dataPath, 'sandbox');
  const path = join(folder, 'module-key');
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Under another name first: a crash must not leave an empty key behind, which would let everybody in.
    const fresh = `${path}.new`;
    writeFileSync(fresh, randomBytes(KEY_BYTES).toString('base64url'), { mode: 0o600, flush: true });
    renameSync(fresh, path);
  }
  return readFileSync(path, 'utf8').trim();
}
