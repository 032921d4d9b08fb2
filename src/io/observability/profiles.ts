/** Takes profiles of the main thread for the command `profile`: where its time goes, or what allocates its memory. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { SECOND_MS } from '../../domain/time.ts';
import type { Log } from './log.ts';

export const PROFILE_KINDS = ['cpu', 'heap'] as const;
type ProfileKind = (typeof PROFILE_KINDS)[number];
/** A longer profile takes too long to write. */
export const PROFILE_SECONDS_MAX = 60;

const FOLDER = 'profiles';
/** Older ones are removed. */
const FILES_MAX = 10;
const ONLY_OWNER = 0o600;
const REQUEST = /^(cpu|heap) ([1-9][0-9]?)$/;

/** Methods of the inspector. Sampling holds no values: a profile has names of functions and files, counts and sizes. */
const METHODS: Readonly<Record<ProfileKind, readonly [begin: readonly string[], end: string]>> = {
  cpu: [['Profiler.enable', 'Profiler.start'], 'Profiler.stop'],
  heap: [['HeapProfiler.enable', 'HeapProfiler.startSampling'], 'HeapProfiler.stopSampling'],
};

interface ProfilesDeps {
  readonly dataPath: string;
  readonly clock: () => number;
  readonly log: Log;
  /** Wait of a test; default: a timer that holds up no stop. */
  readonly wait?: (delayMs: number) => Promise<unknown>;
}

export class Profiles {
  readonly #deps: ProfilesDeps;
  #isRunning = false;

  constructor(deps: ProfilesDeps) {
    this.#deps = deps;
  }

  /** `request`: kind and seconds. Resolves with `{"file": …}` or `{"fault": …}`, as the command reads it. */
  async answer(request: string): Promise<string> {
    const [, kind, seconds] = REQUEST.exec(request) ?? [];
    if (!isKind(kind) || Number(seconds) > PROFILE_SECONDS_MAX)
      throw new Error('the request names no profile');
    if (this.#isRunning) return JSON.stringify({ fault: 'another profile is being taken' });
    this.#isRunning = true;
    try {
      return JSON.stringify({ file: await this.#take(kind, Number(seconds)) });
    } finally {
      this.#isRunning = false;
    }
  }

  async #take(kind: ProfileKind, seconds: number): Promise<string> {
    const { dataPath, clock, log, wait = timer } = this.#deps;
    const [begin, end] = METHODS[kind];
    const session = new Session();
    session.connect();
    try {
      for (const method of begin) await post(session, method);
      await wait(seconds * SECOND_MS);
      const { profile } = (await post(session, end)) as { readonly profile: unknown };
      const folder = join(dataPath, FOLDER);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      makeRoom(folder);
      const name = `${new Date(clock()).toISOString().replaceAll(/[:.]/g, '-')}.${kind}profile`;
      const file = join(folder, name);
      await writeFile(file, JSON.stringify(profile), { flag: 'wx', mode: ONLY_OWNER });
      log.write('profileTaken', { profile: file });
      return file;
    } finally {
      session.disconnect();
    }
  }
}

const timer = (delayMs: number) => wait(delayMs, undefined, { ref: false });

function isKind(kind: string | undefined): kind is ProfileKind {
  return PROFILE_KINDS.some((each) => each === kind);
}

/** Names begin with their time. */
function makeRoom(folder: string): void {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('profile'))
    .sort();
  for (const name of files.slice(0, Math.max(0, files.length + 1 - FILES_MAX))) rmSync(join(folder, name));
}

function post(session: Session, method: string): Promise<unknown> {
  return new Promise((resolve, reject) =>
    session.post(method, (error, result) => (error === null ? resolve(result) : reject(error))),
  );
}
