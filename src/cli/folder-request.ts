/** Asks the gateway that serves a data folder, through files of that folder. */
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
import { FolderInUse, holdFolder, JournalUnusable } from '../bootstrap/data-directory.ts';
import { answerFileOf, type RequestKind, requestFileOf } from '../bootstrap/folder-requests.ts';
import { NoGateway } from './output.ts';

const NONCE_BYTES = 16;
/** The gateway looks every second. */
const TIMEOUT_MS = 10_000;
const POLL_MS = 100;

/** Resolves with the answer, for which the gateway works `workMs`. Throws `NoGateway`, and `JournalUnusable` when the folder cannot be written. */
export async function askFolder(dataPath: string, kind: RequestKind, body = '', workMs = 0): Promise<string> {
  await requireGateway(dataPath);
  const nonce = randomBytes(NONCE_BYTES).toString('base64url');
  const request = requestFileOf(dataPath, kind);
  const file = answerFileOf(dataPath, kind, nonce);
  try {
    writeRequest(request, body === '' ? nonce : `${nonce}\n${body}`);
    return await answer(file, workMs + TIMEOUT_MS);
  } finally {
    for (const each of [request, file]) rmSync(each, { force: true });
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
function writeRequest(file: string, text: string): void {
  rmSync(file, { force: true });
  try {
    const fd = openSync(file, 'wx', 0o600);
    writeSync(fd, text);
    fchmodSync(fd, 0o644);
    closeSync(fd);
  } catch (error) {
    throw new JournalUnusable(`the request cannot be written: ${(error as Error).message}`);
  }
}

async function answer(file: string, timeoutMs: number): Promise<string> {
  for (let waitedMs = 0; waitedMs < timeoutMs; waitedMs += POLL_MS) {
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) {
      const text = readFileSync(file, 'utf8');
      if (text.endsWith('\n')) return text.trim();
    }
    await wait(POLL_MS);
  }
  throw new NoGateway(`the gateway gave no answer within ${timeoutMs / 1000} s; its log says why`);
}
