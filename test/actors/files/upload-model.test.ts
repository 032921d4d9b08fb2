/**
 * v1 uploads against a reference that knows nothing of actors, slots or messages: any history of inits, parts,
 * cancellations, failing calls, time and restarts. And any history that is cut off in the middle: in the end every file
 * has its message, every message its file, and no slot is taken.
 */
import fc from 'fast-check';
import t from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/domain/time.ts';
import { runs } from '../../support/depth.ts';
import {
  createUploadActors,
  SampleFile,
  type UploadActors,
  type UploadCall,
} from '../../support/files/upload-world.ts';

t.setTimeout(120_000);

const RUNS = 60;
const CUT_RUNS = 80;
const USERS = ['1001', '1002', '1003'];
/** Two of them have a CRC-32 of their own, one is a file that does not have the checksum it declares. */
const FILES = [new SampleFile(1, 1), new SampleFile(2, 2), new SampleFile(3, 3), lying(new SampleFile(4, 2))];
const INACTIVITY_MS = 60 * SECOND_MS;
const MEMORY_MS = 10 * MINUTE_MS;

function lying(file: SampleFile): SampleFile {
  return Object.assign(Object.create(file) as SampleFile, { uploadId: 99, sizeBytes: file.sizeBytes });
}

type Step =
  | { do: 'init'; who: number; file: number }
  | { do: 'part'; who: number; file: number; chunk: number; good: boolean }
  | { do: 'cancel'; who: number; file: number }
  | { do: 'advance'; seconds: number }
  | { do: 'fault'; call: UploadCall | null }
  | { do: 'restart' }
  /** A kill between the bytes of a missing chunk and its turn; with `twice` another one right after the restart. */
  | { do: 'cut'; upload: number; chunk: number; twice: boolean };

const who = fc.nat({ max: USERS.length - 1 });
const file = fc.nat({ max: FILES.length - 1 });
const chunk = fc.integer({ min: -1, max: 3 });
const good = fc.boolean();
const call = fc.constantFrom<(UploadCall | null)[]>(
  null,
  null,
  'create',
  'createPart',
  'publish',
  'complete',
  'cancel',
  'remove',
  'reserve',
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('init' as const), who, file }) },
  {
    weight: 20,
    arbitrary: fc.record({ do: fc.constant('part' as const), who, file, chunk, good: fc.constant(true) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('part' as const), who, file, chunk, good }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), who, file }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      seconds: fc.constantFrom(1, 30, 59, 60, 601),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fault' as const), call }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('cut' as const),
      upload: who,
      chunk: fc.nat({ max: 2 }),
      twice: fc.boolean(),
    }),
  },
);

interface Active {
  readonly file: SampleFile;
  readonly stored: Set<number>;
  activeMs: number;
}

/** What a user may expect, in a few lines. */
class Reference {
  readonly active = new Map<string, Active>();
  readonly finished = new Map<string, { chunk: number; untilMs: number }>();
  fault: UploadCall | null = null;
  completed = 0;
  nowMs: number;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  tick(seconds: number): void {
    this.nowMs += seconds * SECOND_MS;
    for (const [userId, { activeMs }] of this.active)
      if (this.nowMs >= activeMs + INACTIVITY_MS) this.active.delete(userId);
  }

  init(userId: string, wanted: SampleFile): string {
    if (this.active.has(userId)) return 'AlreadyDownload';
    for (const { file: other } of this.active.values())
      if (other.uploadId === wanted.uploadId) return 'CRC32AlreadyUsed';
    if (this.fault === 'reserve') return 'StorageFull';
    if (this.fault === 'create') return 'ChartApiFileError';
    if (this.fault === 'createPart') return 'FileStorageFailed';
    this.active.set(userId, { file: wanted, stored: new Set(), activeMs: this.nowMs });
    this.finished.delete(`${userId} ${wanted.uploadId}`);
    return 'open';
  }

  /** Of one active upload a missing chunk, whose bytes a restart finds in the part. Undefined when there is none. */
  write(upload: number, chunk: number): [userId: string, sent: SampleFile, chunk: number] | undefined {
    const [userId, active] = [...this.active].at(upload % this.active.size) ?? [];
    if (userId === undefined || active === undefined) return undefined;
    const missing = [...active.file.chunks.keys()].filter((at) => !active.stored.has(at));
    const at = missing[chunk % missing.length];
    if (at === undefined) return undefined;
    active.stored.add(at);
    active.activeMs = this.nowMs;
    return [userId, active.file, at];
  }

  part(userId: string, sent: SampleFile, at: number, isGood: boolean): string {
    const active = this.active.get(userId);
    if (active?.file.uploadId !== sent.uploadId) {
      const finished = this.finished.get(`${userId} ${sent.uploadId}`);
      const remembered = finished?.chunk === at && isGood && this.nowMs < finished.untilMs;
      return remembered ? 'file' : 'InvalidID';
    }
    if (at < 0 || at >= sent.chunks.length) return 'InvalidPart';
    if (active.stored.has(at) && !isGood) return 'ChecksumError';
    // One that a kill left full completes at any repeat.
    if (active.stored.has(at) && active.stored.size < sent.chunks.length) return 'stored';
    active.stored.add(at);
    active.activeMs = this.nowMs;
    if (active.stored.size < sent.chunks.length) return 'stored';
    this.active.delete(userId);
    if (sent.uploadId === 99) return 'ChecksumError';
    if (this.fault === 'publish') return 'FileStorageFailed';
    if (this.fault === 'complete') return 'ChartApiFileError';
    this.finished.set(`${userId} ${sent.uploadId}`, { chunk: at, untilMs: this.nowMs + MEMORY_MS });
    this.completed += 1;
    return 'file';
  }

  cancel(userId: string, wanted: SampleFile): string {
    if (this.active.get(userId)?.file.uploadId !== wanted.uploadId) return 'InvalidID';
    this.active.delete(userId);
    return 'null';
  }
}

const ERROR_OF: Partial<Record<UploadCall, 'StorageFull' | 'FileStorageFailed'>> = {
  reserve: 'StorageFull',
  createPart: 'FileStorageFailed',
  publish: 'FileStorageFailed',
  remove: 'FileStorageFailed',
};

function setFault({ world }: UploadActors, failing: UploadCall | null): void {
  world.fault = (one) => (one === failing ? { error: ERROR_OF[one] ?? 'ChartApiFileError' } : undefined);
}

async function outcomeOf(work: Promise<unknown>): Promise<string> {
  try {
    const reply = await work;
    if (reply === null) return 'null';
    if (typeof reply === 'number') return 'open';
    return (reply as { fileId: string | null }).fileId === null ? 'stored' : 'file';
  } catch (error) {
    if (error instanceof GatewayError) return error.row;
    throw error;
  }
}

type Call = Extract<Step, { who: number }>;

async function cut(
  uploads: UploadActors,
  one: Extract<Step, { do: 'cut' }>,
  reference?: Reference,
): Promise<void> {
  const written = reference?.write(one.upload, one.chunk);
  if (written !== undefined) uploads.write(...written);
  await restart(uploads);
  if (one.twice) await restart(uploads);
}

function act(uploads: UploadActors, one: Call): Promise<unknown> {
  const userId = USERS[one.who] ?? '';
  const sample = FILES[one.file] ?? FILES[0];
  if (sample === undefined) throw new Error('there are files');
  if (one.do === 'init') return uploads.init(userId, sample);
  if (one.do === 'cancel') return uploads.cancel(userId, sample.uploadId);
  return uploads.part(userId, sample, one.chunk, one.good ? sample.crcOf(one.chunk) : 7);
}

/** The route checks the checksum of a new chunk before the actor gets it: the model asks for stored ones alone. */
function isForRoute(reference: Reference, one: Step): boolean {
  if (one.do !== 'part' || one.good) return false;
  const active = reference.active.get(USERS[one.who] ?? '');
  return active?.file === FILES[one.file] && !active?.stored.has(one.chunk);
}

function expectedOf(reference: Reference, one: Call): string {
  const userId = USERS[one.who] ?? '';
  const sample = FILES[one.file];
  if (sample === undefined) throw new Error('there are files');
  if (one.do === 'init') return reference.init(userId, sample);
  if (one.do === 'cancel') return reference.cancel(userId, sample);
  return reference.part(userId, sample, one.chunk, one.good);
}

async function restart(uploads: UploadActors): Promise<void> {
  uploads.world.reserved.clear();
  await uploads.actors.restart();
  await uploads.sweep();
  for (const { userId, uploadKey } of await uploads.slots()) await uploads.check(userId, uploadKey);
}

/** Everything that is not complete expires and is cleaned up. */
async function toTheEnd(uploads: UploadActors): Promise<string[]> {
  setFault(uploads, null);
  uploads.world.hold = () => undefined;
  await uploads.actors.advance(HOUR_MS);
  const faults = [...uploads.world.faults(), ...uploads.actors.bugs.map(({ error }) => String(error))];
  for (const { userId } of await uploads.slots()) faults.push(`slot of ${userId}`);
  if (uploads.actors.system.count('crc32') > 0) faults.push('a checksum in use');
  return faults;
}

const settings = () => new LiveSettings({ UploadInactivitySeconds: INACTIVITY_MS / SECOND_MS });

t.test('uploads: any history ends as in the reference', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }), async (steps) => {
      const uploads = createUploadActors({ settings: settings() });
      const reference = new Reference(uploads.actors.clock.nowMs);
      for (const [at, one] of steps.entries()) {
        if (isForRoute(reference, one)) continue;
        if (one.do === 'advance') {
          await uploads.actors.advance(one.seconds * SECOND_MS);
          reference.tick(one.seconds);
        } else if (one.do === 'fault') {
          setFault(uploads, one.call);
          reference.fault = one.call;
        } else if (one.do === 'restart' || one.do === 'cut') {
          if (one.do === 'cut') await cut(uploads, one, reference);
          else await restart(uploads);
          for (const [userId, { file: open, stored }] of reference.active) {
            const missing = (await uploads.missing(userId, open)).join();
            const expected = [...open.chunks.keys()].filter((chunk) => !stored.has(chunk)).join();
            if (missing !== expected) throw new Error(`step ${at}: ${missing} missing, expected ${expected}`);
          }
        } else {
          const outcome = await outcomeOf(act(uploads, one));
          const expected = expectedOf(reference, one);
          if (outcome !== expected)
            throw new Error(`step ${at}, ${JSON.stringify(one)}: ${outcome}, expected ${expected}`);
        }
        const slots = (await uploads.slots()).map(({ userId }) => userId).sort();
        const expectedSlots = [...reference.active.keys()].sort();
        if (slots.join() !== expectedSlots.join()) throw new Error(`step ${at}: slots of ${slots.join()}`);
        await uploads.actors.settle();
      }
      const faults = await toTheEnd(uploads);
      if (faults.length > 0) throw new Error(faults.join('; '));
      if (uploads.world.published.size !== reference.completed) throw new Error('a file too many or too few');
    }),
    runs(RUNS),
  );
  t.pass('it held');
});

t.test(
  'uploads: whatever is cut off by a crash, in the end file and message are both there or neither',
  async (t) => {
    const delays = fc.array(fc.nat({ max: 30 }), { minLength: 60, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 60, size: 'max' }),
        delays,
        async (steps, turns) => {
          const uploads = createUploadActors({ settings: settings() });
          const complete = new Set<string>();
          for (const [at, one] of steps.entries()) {
            if (one.do === 'advance') await uploads.actors.advance(one.seconds * SECOND_MS);
            else if (one.do === 'fault') setFault(uploads, one.call);
            else if (one.do === 'restart') await restart(uploads);
            else if (one.do === 'cut') await cut(uploads, one);
            else if (one.do !== 'part' || one.good) {
              // No caller waits for it: the next step, a crash perhaps, comes in the middle.
              act(uploads, one).then(
                (reply) => {
                  const fileId = (reply as { fileId?: string | null } | null)?.fileId ?? null;
                  if (fileId !== null) complete.add(fileId);
                },
                (error: unknown) => {
                  if (!(error instanceof GatewayError)) throw error;
                },
              );
            }
            for (let turn = turns[at] ?? 0; turn > 0; turn -= 1)
              await new Promise((resolve) => setImmediate(resolve));
          }
          await restart(uploads);
          const faults = await toTheEnd(uploads);
          for (const fileId of complete)
            if (![...uploads.world.published.keys()].some((name) => name.endsWith(`/${fileId}`)))
              faults.push(`${fileId} was acknowledged and is gone`);
          if (faults.length > 0) throw new Error(faults.join('; '));
        },
      ),
      runs(CUT_RUNS),
    );
    t.pass();
  },
);
