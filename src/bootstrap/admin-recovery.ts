/**
 * `admin recover`: a new set-up link through files of the data folder, which only the user of the gateway and root can
 * write. The command leaves a request; the gateway answers with a file that holds the link, and records it in the audit log.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  rmSync,
  type Stats,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { AuditRecord } from '../actors/runtime/actor.ts';
import type { Log } from '../io/observability/log.ts';

const REQUEST_FILE = 'admin-recover.request';
/** The request names the answer, so that no earlier file is taken for it: 16 random bytes in base64url. */
const NONCE_PATTERN = /^[A-Za-z0-9_-]{22}$/;
const REQUEST_MAX_BYTES = 64;
/** An older request is of a command that has ended. */
const REQUEST_MAX_AGE_MS = 60_000;
const INTERVAL_MS = 1_000;
const OTHERS_MAY_WRITE = 0o022;

export function requestFileOf(dataPath: string): string {
  return join(dataPath, REQUEST_FILE);
}

export function linkFileOf(dataPath: string, nonce: string): string {
  return join(dataPath, `admin-recover-${nonce}.link`);
}

interface RecoveryDeps {
  readonly dataPath: string;
  readonly clock: () => number;
  readonly log: Log;
  /** Resolves when the record is on disk. */
  readonly audit: (record: AuditRecord) => Promise<void>;
  /** Makes a new link, which replaces the one before, and returns its address. */
  readonly createLink: () => string;
}

/** Answers requests in the data folder. */
export class AdminRecovery {
  readonly #deps: RecoveryDeps;
  readonly #timer: NodeJS.Timeout;
  #lastLink: string | undefined;

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.check(), INTERVAL_MS).unref();
  }

  /** Takes a request, if there is one. Never rejects. */
  async check(): Promise<void> {
    const { dataPath, log, clock } = this.#deps;
    const file = requestFileOf(dataPath);
    if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return;
    try {
      const { nonce, uid } = takeRequest(file, clock());
      await this.#deps.audit({ utcMs: clock(), event: 'admin_recovery', userId: null, fields: { uid } });
      this.#removeLink();
      const link = linkFileOf(dataPath, nonce);
      writeFileSync(link, `${this.#deps.createLink()}\n`, { flag: 'wx', mode: 0o600 });
      this.#lastLink = link;
      log.write('adminRecovery');
    } catch (error) {
      log.write('adminRecoveryRefused', { detail: error instanceof Error ? error.message : String(error) });
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#removeLink();
  }

  /** The command removes it after reading; one that was killed did not. */
  #removeLink(): void {
    if (this.#lastLink !== undefined) rmSync(this.#lastLink, { force: true });
  }
}

/** Reads and removes the request. Throws the reason why it does not count. */
function takeRequest(file: string, nowMs: number): { nonce: string; uid: number } {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(fd);
      const fault = faultOf(stats, nowMs);
      if (fault !== undefined) throw new Error(`${file} ${fault}`);
      const nonce = readFileSync(fd, 'utf8').trim();
      if (!NONCE_PATTERN.test(nonce)) throw new Error(`${file} holds no request`);
      return { nonce, uid: stats.uid };
    } finally {
      closeSync(fd);
    }
  } finally {
    rmSync(file, { force: true, recursive: true });
  }
}

function faultOf(stats: Stats, nowMs: number): string | undefined {
  if (!stats.isFile() || stats.nlink !== 1) return 'is no plain file';
  if (stats.uid !== 0 && stats.uid !== process.geteuid?.()) return 'has another owner';
  if ((stats.mode & OTHERS_MAY_WRITE) !== 0) return 'can be written by others';
  if (stats.size > REQUEST_MAX_BYTES) return 'is too long';
  if (nowMs - stats.mtimeMs > REQUEST_MAX_AGE_MS) return 'is too old';
  return undefined;
}
