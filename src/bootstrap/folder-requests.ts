/**
 * Commands of the operator to a running gateway through files of the data folder, which only the user of the gateway and root
 * can write. A command leaves a request; the gateway answers with a file.
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
import type { Log } from '../io/observability/log.ts';

/** `file`: beginning of the names of request and answer. `maxBytes`: of a request. `refused`: the line of one that does not count. */
const REQUESTS = {
  adminRecover: { file: 'admin-recover', answer: 'link', maxBytes: 64, refused: 'adminRecoveryRefused' },
  profile: { file: 'profile', answer: 'json', maxBytes: 64, refused: 'profileRefused' },
  mcpServers: { file: 'mcp-servers', answer: 'json', maxBytes: 512, refused: 'mcpServersRefused' },
} as const;
export type RequestKind = keyof typeof REQUESTS;
/** The request names the answer, so that no earlier file is taken for it: 16 random bytes in base64url. */
const NONCE_PATTERN = /^[A-Za-z0-9_-]{22}$/;
/** An older request is of a command that has ended. */
const REQUEST_MAX_AGE_MS = 60_000;
const INTERVAL_MS = 1_000;
const OTHERS_MAY_WRITE = 0o022;

export function requestFileOf(dataPath: string, kind: RequestKind): string {
  return join(dataPath, `${REQUESTS[kind].file}.request`);
}

export function answerFileOf(dataPath: string, kind: RequestKind, nonce: string): string {
  const { file, answer } = REQUESTS[kind];
  return join(dataPath, `${file}-${nonce}.${answer}`);
}

/** `body`: the request behind its first line. `uid`: of the user who wrote it. Resolves with one line. */
type Answerer = (body: string, uid: number) => Promise<string>;

interface FolderRequestDeps {
  readonly dataPath: string;
  readonly clock: () => number;
  readonly log: Log;
  readonly answer: Readonly<Record<RequestKind, Answerer>>;
}

/** Answers requests in the data folder. */
export class FolderRequests {
  readonly #deps: FolderRequestDeps;
  readonly #timer: NodeJS.Timeout;
  readonly #lastAnswers = new Map<RequestKind, string>();

  constructor(deps: FolderRequestDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => void this.check(), INTERVAL_MS).unref();
  }

  /** Takes the requests that are there. Never rejects. */
  async check(): Promise<void> {
    await Promise.all((Object.keys(REQUESTS) as RequestKind[]).map((kind) => this.#check(kind)));
  }

  async #check(kind: RequestKind): Promise<void> {
    const { dataPath, log, clock, answer } = this.#deps;
    const file = requestFileOf(dataPath, kind);
    if (lstatSync(file, { throwIfNoEntry: false }) === undefined) return;
    try {
      const { nonce, body, uid } = takeRequest(file, REQUESTS[kind].maxBytes, clock());
      const line = await answer[kind](body, uid);
      this.#removeAnswer(kind);
      const target = answerFileOf(dataPath, kind, nonce);
      this.#lastAnswers.set(kind, target);
      writeFileSync(target, `${line}\n`, { flag: 'wx', mode: 0o600 });
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error);
      log.write(REQUESTS[kind].refused, { detail });
    }
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const kind of this.#lastAnswers.keys()) this.#removeAnswer(kind);
  }

  /** The command removes it after reading; one that was killed did not. */
  #removeAnswer(kind: RequestKind): void {
    const file = this.#lastAnswers.get(kind);
    if (file !== undefined) rmSync(file, { force: true });
  }
}

/** Reads and removes the request. Throws the reason why it does not count. */
function takeRequest(
  file: string,
  maxBytes: number,
  nowMs: number,
): { nonce: string; body: string; uid: number } {
  try {
    const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = fstatSync(fd);
      const fault = faultOf(stats, maxBytes, nowMs);
      if (fault !== undefined) throw new Error(`${file} ${fault}`);
      const [nonce = '', ...rest] = readFileSync(fd, 'utf8').trim().split('\n');
      if (!NONCE_PATTERN.test(nonce)) throw new Error(`${file} holds no request`);
      return { nonce, body: rest.join('\n'), uid: stats.uid };
    } finally {
      closeSync(fd);
    }
  } finally {
    rmSync(file, { force: true, recursive: true });
  }
}

function faultOf(stats: Stats, maxBytes: number, nowMs: number): string | undefined {
  if (!stats.isFile() || stats.nlink !== 1) return 'is no plain file';
  if (stats.uid !== 0 && stats.uid !== process.geteuid?.()) return 'has another owner';
  if ((stats.mode & OTHERS_MAY_WRITE) !== 0) return 'can be written by others';
  if (stats.size > maxBytes) return 'is too long';
  if (nowMs - stats.mtimeMs > REQUEST_MAX_AGE_MS) return 'is too old';
  return undefined;
}
