/**
 * The key of the sandbox modules. A process that can read the data folder can push events with it, as a real module does.
 * Created once, readable by its owner only.
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
    // Written under another name first: a crash must not leave an empty key, which would admit all callers.
    const fresh = `${path}.new`;
    writeFileSync(fresh, randomBytes(KEY_BYTES).toString('base64url'), { mode: 0o600, flush: true });
    renameSync(fresh, path);
  }
  return readFileSync(path, 'utf8').trim();
}
