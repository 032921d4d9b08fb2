/** The command `admin recover`: asks the gateway that serves the data folder for a link that makes an admin. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchmodSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { linkFileOf, requestFileOf } from '../bootstrap/admin-recovery.ts';
import { FolderInUse, holdFolder, JournalUnusable } from '../bootstrap/data-directory.ts';
import { NoGateway, print } from './output.ts';

const NONCE_BYTES = 16;
/** The gateway looks every second. */
const TIMEOUT_MS = 10_000;
const POLL_MS = 100;

/** Prints the link. Throws `NoGateway`, and `JournalUnusable` when the folder cannot be written. */
export async function recoverAdmin(dataPath: string): Promise<void> {
  await requireGateway(dataPath);
  const nonce = randomBytes(NONCE_BYTES).toString('base64url');
  const request = requestFileOf(dataPath);
  const link = linkFileOf(dataPath, nonce);
  try {
    writeRequest(request, nonce);
    const address = await answer(link);
    print(`admin recovery ${address}\n               (once, within 30 minutes; it makes one more admin)\n`);
  } finally {
    for (const file of [request, link]) rmSync(file, { force: true });
  }
}

/** Only a served folder is locked. */
async function requireGateway(dataPath: string): Promise<void> {
  if (existsSync(dataPath)) {
    try {
      (await holdFolder(dataPath)).release();
    } catch (error) {
      if (error instanceof FolderInUse) return;
      throw error;
    }
  }
  throw new NoGateway(`no gateway serves ${dataPath}; start it, then run this command again`);
}

/** Readable for a gateway of another user, when root runs the command; writable for its owner alone. */
function writeRequest(file: string, nonce: string): void {
  rmSync(file, { force: true });
  try {
    const fd = openSync(file, 'wx', 0o600);
    writeSync(fd, nonce);
    fchmodSync(fd, 0o644);
    closeSync(fd);
  } catch (error) {
    throw new JournalUnusable(`the request cannot be written: ${(error as Error).message}`);
  }
}

async function answer(link: string): Promise<string> {
  for (let waitedMs = 0; waitedMs < TIMEOUT_MS; waitedMs += POLL_MS) {
    if (statSync(link, { throwIfNoEntry: false })?.isFile()) {
      const text = readFileSync(link, 'utf8');
      if (text.endsWith('\n')) return text.trim();
    }
    await wait(POLL_MS);
  }
  throw new NoGateway(`the gateway gave no link within ${TIMEOUT_MS / 1000} s; its log says why`);
}
