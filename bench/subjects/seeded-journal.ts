/**
 * A journal with as many accounts as a large deployment has, each with one browser session. Written through the
 * gateway's own actors in this process, without HTTP and without the check of curve points at an enrolment, which takes
 * a sign-up two milliseconds of a processor: 100,000 of them through the public API would be minutes, not seconds.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { user } from '../../src/actors/accounts/user.ts';
import type { SignUp } from '../../src/actors/accounts/user-sign-up.ts';
import { KINDS } from '../../src/actors/kinds.ts';
import type { Ports, WorkerPort } from '../../src/actors/runtime/ports.ts';
import { nodeSchedule } from '../../src/actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../../src/actors/runtime/system.ts';
import { openStorage } from '../../src/bootstrap/journal.ts';
import { auditRowsMax } from '../../src/domain/audit.ts';
import { TickSource } from '../../src/domain/ids.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';

/** Bytes by which the gateway grows its own journal. */
const STEP_BYTES = 64 * 1024 * 1024;
/** Sign-ups under way at once: large groups, one sync each. */
const STREAMS = 1_000;
const PROOF = { message: new Uint8Array(8), signature: new Uint8Array(64) };
const ORIGIN = { ip: '127.0.0.1', userAgent: 'gatehouse-bench' };
const DRAIN_MS = 10_000;

type SystemOptions = Parameters<typeof createActorSystem>[0];

export interface SeededSession {
  readonly userId: string;
  /** Cookie as a request header has it. */
  readonly cookie: string;
}

/** Writes the journal into `dataPath`, which must hold none. Resolves when it is closed and may be opened by a gateway. */
export async function seedJournal(dataPath: string, accounts: number): Promise<SeededSession[]> {
  mkdirSync(dataPath, { recursive: true, mode: 0o700 });
  const settings = new LiveSettings();
  const journal = await openStorage({
    directory: dataPath,
    stepBytes: STEP_BYTES,
    auditRowsMax: (ring) => auditRowsMax(settings, ring),
  });
  return seedActors({ journal, settings }, accounts);
}

interface SeededPlace extends Pick<SystemOptions, 'journal' | 'settings' | 'cluster' | 'node'> {
  /** Before the journal is closed. */
  readonly leave?: () => Promise<void>;
}

/** The same where the caller has opened the journal, which is closed at the end. */
export async function seedActors(
  { leave, ...place }: SeededPlace,
  accounts: number,
): Promise<SeededSession[]> {
  const actors = createActorSystem({
    kinds: KINDS,
    ...place,
    // Sign-up of a software key calls the workers only.
    ports: { workers: TRUSTING } as Partial<Ports> as Ports,
    clock: Date.now,
    randomBytes: (length) => randomBytes(length),
    schedule: nodeSchedule,
    onFatal: rethrow,
    onBug: ({ error }) => rethrow(error),
  });
  const sessions = await signUps(actors, accounts);
  await actors.drain(DRAIN_MS);
  await leave?.();
  await actors.close();
  return sessions;
}

/** Finds every key sound and every signature good. */
const TRUSTING: WorkerPort = {
  run: async () => ({ ok: true, value: true }) as Awaited<ReturnType<WorkerPort['run']>> as never,
};

function rethrow(error: unknown): never {
  throw error;
}

async function signUps(actors: RunningSystem, accounts: number): Promise<SeededSession[]> {
  const ids = new TickSource();
  const sessions: SeededSession[] = [];
  let started = 0;
  const stream = async () => {
    while (started < accounts) {
      started += 1;
      const userId = String(ids.next(Date.now()));
      const command: SignUp = {
        type: 'signUp',
        publicKey: randomBytes(32).toString('base64url'),
        proof: PROOF,
        passKeyFlag: false,
        handle: randomBytes(32).toString('base64url'),
        challenge: { id: randomInt(2 ** 47), endsMs: Date.now() },
        origin: ORIGIN,
      };
      const { token } = await actors.ask(user, userId, command);
      sessions.push({ userId, cookie: `sid=${token}` });
    }
  };
  await Promise.all(Array.from({ length: STREAMS }, stream));
  return sessions;
}
