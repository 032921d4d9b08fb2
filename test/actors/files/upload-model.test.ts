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
import { type StepOf, step } from '../../support/steps.ts';

t.setTimeout(120_000);

const RUNS = 60;
const CUT_RUNS = 80;
const USERS = ['1001', '1002', '1003'];
/** Two of them have a CRC-32 of their own, one is a file that does not have the checksum it declares. */
const FILES = [new SampleFile(1, 1), new SampleFile(2, 2), new SampleFile(3, 3), lying(new SampleFile(4, 2))];
/** CRC-32 of any other bytes. */
const OTHER_CRC = 7;
const INACTIVITY_MS = 60 * SECOND_MS;
const MEMORY_MS = 10 * MINUTE_MS;

function lying(file: SampleFile): SampleFile {
  return Object.assign(Object.create(file) as SampleFile, { uploadId: 99, sizeBytes: file.sizeBytes });
}

const who = fc.nat({ max: USERS.length - 1 });
const file = fc.nat({ max: FILES.length - 1 });
const chunk = fc.integer({ min: -1, max: 3 });
const storedChunk = { upload: who, chunk: fc.nat({ max: 2 }) };
const CALLS = ['create', 'createPart', 'publish', 'complete', 'cancel', 'remove', 'reserve'] as const;
const anyStep = fc.oneof(
  step(6, 'init', { who, file }),
  step(20, 'part', { who, file, chunk, good: fc.constant(true) }),
  // Not `good`: other bytes, with their right checksum.
  step(4, 'part', { who, file, chunk, good: fc.boolean() }),
  step(2, 'cancel', { who, file }),
  step(2, 'advance', { seconds: fc.constantFrom(1, 30, 59, 60, 601) }),
  step(2, 'fault', { call: fc.constantFrom<(UploadCall | null)[]>(null, null, ...CALLS) }),
  step(2, 'restart'),
  // A kill between the bytes of a missing chunk and its turn; with `twice` another one right after the restart.
  step(3, 'cut', { ...storedChunk, twice: fc.boolean() }),
  // A kill after a stored chunk was announced with other bytes, before they are written.
  step(4, 'cutReplacing', storedChunk),
  // A late writer puts the former bytes of a replaced chunk into the part.
  step(4, 'late', storedChunk),
  // A chunk comes with other bytes, then with the file's, then the first write ends late.
  step(4, 'swap', storedChunk),
  // Every chunk that is missing, or has other bytes, is sent.
  step(4, 'finish', storedChunk),
);
type Step = StepOf<typeof anyStep>;

interface Active {
  readonly file: SampleFile;
  /** Chunk to whether its bytes are the file's, as they were acknowledged; as they are on the disk; as they may be. */
  readonly stored: Map<number, boolean>;
  readonly disk: Map<number, boolean>;
  readonly announced: Map<number, boolean>;
  activeMs: number;
}

/** Model of the uploads that a user may expect, in a few lines. */
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
    const none = { stored: new Map(), disk: new Map(), announced: new Map() };
    this.active.set(userId, { file: wanted, ...none, activeMs: this.nowMs });
    this.finished.delete(`${userId} ${wanted.uploadId}`);
    return 'open';
  }

  /** Picks one chunk that `isWanted` of one active upload. Undefined when there is none. */
  pick(
    { upload, chunk }: { readonly upload: number; readonly chunk: number },
    isWanted: (active: Active, at: number) => boolean,
  ): [userId: string, active: Active, chunk: number] | undefined {
    const [userId, active] = [...this.active].at(upload % this.active.size) ?? [];
    if (userId === undefined || active === undefined) return undefined;
    const wanted = [...active.file.chunks.keys()].filter((at) => isWanted(active, at));
    const at = wanted[chunk % wanted.length];
    return at === undefined ? undefined : [userId, active, at];
  }

  /** Puts the written bytes into the part. */
  write(active: Active, at: number, isGood: boolean): void {
    if ((active.stored.get(at) ?? active.announced.get(at) ?? isGood) !== isGood)
      active.announced.set(at, isGood);
    active.stored.set(at, isGood);
    active.disk.set(at, isGood);
    active.activeMs = this.nowMs;
  }

  restart(): void {
    for (const active of this.active.values()) {
      this.#lose(active);
      // Announced bytes that are there count, whichever write brought them.
      for (const [at, isGood] of active.announced)
        if (!active.stored.has(at) && active.disk.get(at) === isGood) this.write(active, at, isGood);
    }
  }

  part(userId: string, sent: SampleFile, at: number, isGood: boolean): string {
    const active = this.active.get(userId);
    if (active?.file.uploadId !== sent.uploadId) {
      const finished = this.finished.get(`${userId} ${sent.uploadId}`);
      const remembered = finished?.chunk === at && isGood && this.nowMs < finished.untilMs;
      return remembered ? 'file' : 'InvalidID';
    }
    if (at < 0 || at >= sent.chunks.length) return 'InvalidPart';
    const isFull = active.stored.size === sent.chunks.length;
    if (active.stored.get(at) !== isGood) this.write(active, at, isGood);
    // One that a kill left full completes at any repeat.
    else if (!isFull) return 'stored';
    active.activeMs = this.nowMs;
    if (active.stored.size < sent.chunks.length) return 'stored';
    return this.#complete(userId, active, at);
  }

  #complete(userId: string, active: Active, at: number): string {
    const { file: sent, stored, announced } = active;
    this.active.delete(userId);
    if (sent.uploadId === 99 || [...stored.values()].includes(false)) return 'ChecksumError';
    if (this.fault === 'publish') return 'FileStorageFailed';
    if (announced.size > 0 && this.#lose(active) > 0) {
      this.active.set(userId, active);
      return 'ChecksumError';
    }
    if (this.fault === 'complete') return 'ChartApiFileError';
    this.finished.set(`${userId} ${sent.uploadId}`, { chunk: at, untilMs: this.nowMs + MEMORY_MS });
    this.completed += 1;
    return 'file';
  }

  /** Chunks whose bytes on the disk are others than those acknowledged. */
  #lose(active: Active): number {
    const lost = [...active.stored].filter(([at, isGood]) => active.disk.get(at) !== isGood);
    for (const [at] of lost) active.stored.delete(at);
    if (lost.length > 0) active.activeMs = this.nowMs;
    return lost.length;
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
type SimpleStep = Exclude<Step, { do: 'swap' | 'finish' }>;

function simpleSteps(reference: Reference, one: Step): SimpleStep[] {
  if (one.do !== 'swap' && one.do !== 'finish') return [one];
  const picked = reference.pick(one, () => true);
  if (picked === undefined) return [];
  const [userId, { file: sample, stored }, chunk] = picked;
  const part = (at: number, isGood: boolean): SimpleStep => {
    const ids = { who: USERS.indexOf(userId), file: FILES.indexOf(sample) };
    return { do: 'part', ...ids, chunk: at, good: isGood };
  };
  if (one.do === 'swap') return [part(chunk, false), part(chunk, true), { ...one, do: 'late' }];
  return [...sample.chunks.keys()].filter((at) => stored.get(at) !== true).map((at) => part(at, true));
}

/** Each is expanded when its turn comes. */
function* eachSimple(steps: readonly Step[], reference: Reference): Generator<[number, SimpleStep]> {
  for (const [at, one] of steps.entries())
    for (const simple of simpleSteps(reference, one)) yield [at, simple];
}

type Cut = Extract<Step, { do: 'cut' | 'cutReplacing' | 'late' }>;

const crcFor = (sample: SampleFile, at: number, isGood: boolean) => (isGood ? sample.crcOf(at) : OTHER_CRC);

/** Steps that the actors do not see, or not to their end. Parts that a late writer had open are added to `written`. */
async function interrupt(
  uploads: UploadActors,
  one: Cut,
  reference: Reference,
  written: Set<Map<number, number>>,
): Promise<void> {
  const picked = reference.pick(one, ({ stored, announced }, at) =>
    one.do === 'late' ? announced.has(at) : stored.has(at) === (one.do === 'cutReplacing'),
  );
  if (picked !== undefined) {
    const [userId, active, at] = picked;
    const { file: sample, stored, announced, disk } = active;
    if (one.do === 'cut') {
      await uploads.write(userId, sample, at);
      reference.write(active, at, true);
    } else if (one.do === 'cutReplacing') {
      const isGood = stored.get(at) !== true;
      await uploads.announce(userId, sample, at, crcFor(sample, at, isGood));
      stored.delete(at);
      announced.set(at, isGood);
    } else {
      const isGood = announced.get(at) !== true;
      const { fileId } = await uploads.announce(userId, sample, at, crcFor(sample, at, !isGood));
      uploads.world.write(userId, fileId, at, crcFor(sample, at, isGood));
      disk.set(at, isGood);
      written.add(uploads.world.parts.get(`${userId}/${fileId}`) ?? new Map());
    }
  }
  if (one.do === 'late') return;
  await restart(uploads);
  if (one.do === 'cut' && one.twice) await restart(uploads);
  reference.restart();
}

function act(uploads: UploadActors, one: Call): Promise<unknown> {
  const userId = USERS[one.who] ?? '';
  const sample = FILES[one.file] ?? FILES[0];
  if (sample === undefined) throw new Error('there are files');
  if (one.do === 'init') return uploads.init(userId, sample);
  if (one.do === 'cancel') return uploads.cancel(userId, sample.uploadId);
  return uploads.part(userId, sample, one.chunk, one.good ? sample.crcOf(one.chunk) : OTHER_CRC);
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

// covers S151 S166
t.test('uploads: any history ends as in the reference', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 10, maxLength: 60, size: 'max' }), async (steps) => {
      const uploads = createUploadActors({ settings: settings() });
      const reference = new Reference(uploads.actors.clock.nowMs);
      const written = new Set<Map<number, number>>();
      for (const [at, one] of eachSimple(steps, reference)) {
        if (one.do === 'advance') {
          await uploads.actors.advance(one.seconds * SECOND_MS);
          reference.tick(one.seconds);
        } else if (one.do === 'fault') {
          setFault(uploads, one.call);
          reference.fault = one.call;
        } else if (one.do === 'restart' || 'upload' in one) {
          if ('upload' in one) await interrupt(uploads, one, reference, written);
          else {
            await restart(uploads);
            reference.restart();
          }
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
      // The late writers are not over yet.
      for (const part of written) part.set(0, OTHER_CRC);
      const faults = await toTheEnd(uploads);
      if (faults.length > 0) throw new Error(faults.join('; '));
      if (uploads.world.published.size !== reference.completed) throw new Error('a file too many or too few');
    }),
    runs(RUNS),
  );
  t.pass('it held');
});

// covers S166
t.test(
  'uploads: whatever is cut off by a crash, in the end file and message are both there or neither',
  async (t) => {
    const delays = fc.array(fc.nat({ max: 30 }), { minLength: 60, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyStep, { minLength: 20, maxLength: 60, size: 'max' }),
        delays,
        async (steps, turns) => {
          const uploads = createUploadActors({ settings: settings() });
          const complete = new Set<string>();
          for (const [at, one] of steps.entries()) {
            if (one.do === 'advance') await uploads.actors.advance(one.seconds * SECOND_MS);
            else if (one.do === 'fault') setFault(uploads, one.call);
            else if (one.do === 'restart' || 'upload' in one) await restart(uploads);
            else {
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
