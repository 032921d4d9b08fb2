/**
 * The draft against a reference that knows nothing of events, messages or timers: any history of openings, streams,
 * pieces, takeovers, failures of module and disk, crashes and waiting, and after every step the same answers, the same
 * kept bytes, and files that agree with their messages.
 */

import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { type DraftProtocol, draft } from '../../../src/actors/files/v2/draft.ts';
import { slotIdOf } from '../../../src/actors/files/v2/draft-state.ts';
import type { Asked, TypeIn } from '../../../src/actors/runtime/protocol.ts';
import { type ErrorName, GatewayError } from '../../../src/domain/errors.ts';
import type { FileSegment } from '../../../src/domain/files/segments.ts';
import { HOUR_MS, MINUTE_MS } from '../../../src/domain/time.ts';
import { runs } from '../../support/depth.ts';
import { createDraftWorld, type DraftWorld, type Mode } from '../../support/files/draft-world.ts';
import { type StepOf, step } from '../../support/steps.ts';

const RUNS = 200;
const OWNER = '501';
const PLACE = slotIdOf(OWNER, 0);
const SIZE_MAX = 40;

const size = fc.nat({ max: SIZE_MAX });
const rarely = fc.nat({ max: 5 }).map((value) => value === 0);
const anyStep = fc.oneof(
  step(4, 'open', { declared: fc.option(size) }),
  step(6, 'begin', {
    offset: fc.oneof({ weight: 2, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: size }),
    appends: fc.boolean(),
    keeps: fc.boolean(),
  }),
  step(5, 'keep', { bytes: size, more: fc.boolean(), stale: rarely }),
  step(4, 'finish', { bytes: size, stale: rarely }),
  step(2, 'end', { stale: fc.boolean() }),
  step(1, 'drop'),
  step(2, 'restart'),
  step(2, 'wait', { minutes: fc.nat({ max: 50 }) }),
  step(1, 'chat', { mode: fc.constantFrom<Mode>('ok', 'ok', 'down', 'cut') }),
  step(1, 'disk', { mode: fc.constantFrom<('ok' | 'down')[]>('ok', 'ok', 'down') }),
);
const steps = fc.array(anyStep, { minLength: 8, maxLength: 40 });
type Step = StepOf<typeof anyStep>;

/** The reference: the one draft that is open, and the files that were answered for. */
interface Reference {
  fileId: string;
  declared: number | null;
  openedMs: number;
  kept: number;
  running: boolean;
}

/** Where streams write: into one part, into parts of their own, or as objects that never change. */
type Places = 'part' | 'segments' | 'pieces';

/** Every byte follows from its position, so that a wrongly assembled file is found. */
function content(fileId: string, sizeBytes: number): Buffer {
  return Buffer.from(Array.from({ length: sizeBytes }, (_, at) => (Number(fileId) * 31 + at * 7) % 251));
}

/** A stream that was superseded before it reported its end, on a node that wakes up later. */
interface LateStream {
  readonly part: string;
  readonly keptBytes: number;
}

const JUNK = Buffer.alloc(SIZE_MAX, 0xee);

class Run {
  readonly #world: DraftWorld = createDraftWorld();
  readonly #places: Places;
  /** The name of the part that the running stream writes. */
  #part = '';
  #late: LateStream[] = [];
  /** Where the running stream began, and what holds the kept bytes. */
  #kept: { readonly beginBytes: number; readonly pieces: readonly FileSegment[] } = {
    beginBytes: 0,
    pieces: [],
  };
  readonly #finished = new Map<string, number>();
  #open: Reference | undefined;
  #stream = 0;

  constructor(places: Places) {
    this.#places = places;
    this.#world.disk.isDurable = places === 'pieces';
  }

  async step(step: Step): Promise<void> {
    const { actors, chat, disk } = this.#world;
    await this.#expire();
    switch (step.do) {
      case 'open':
        await this.#opening(step.declared);
        break;
      case 'begin':
        await this.#begin(step);
        break;
      case 'keep':
        await this.#keep(step);
        break;
      case 'finish':
        await this.#finish(step);
        break;
      case 'end':
        await this.#end(step.stale);
        break;
      case 'drop':
        await this.#drop();
        break;
      case 'restart':
        await actors.restart();
        break;
      case 'wait':
        await actors.advance(step.minutes * MINUTE_MS);
        break;
      case 'chat':
        chat.mode = step.mode;
        break;
      case 'disk':
        disk.mode = step.mode;
    }
    await actors.settle();
    await this.#expire();
    // Bytes that late streams write behind those that counted must count for nothing; they cannot write removed parts.
    for (const { part, keptBytes } of this.#late) if (disk.parts.has(part)) disk.write(part, keptBytes, JUNK);
    await this.#compare(JSON.stringify(step));
  }

  /** Time alone ends a draft an hour after its opening. */
  async #expire(): Promise<void> {
    const { clock } = this.#world.actors;
    if (this.#open !== undefined && clock.nowMs >= this.#open.openedMs + HOUR_MS) this.#open = undefined;
  }

  async #opening(declared: number | null): Promise<void> {
    const { actors, chat, disk } = this.#world;
    if (this.#open === undefined && chat.mode === 'ok' && disk.mode === 'ok')
      await actors.advance(11 * MINUTE_MS);
    const facts = { name: 'a', chatId: null, message: null, linkedMessageId: null, declaredCrc32: null };
    const command = { type: 'openDraft' as const, ownerId: OWNER, sizeBytes: declared, ...facts };
    const { reply, row } = await this.#ask(command);
    if (declared === 0) {
      expect('an empty one', row, 'EmptyFile');
      return;
    }
    if (this.#open !== undefined) {
      expect('a taken place', reply, null);
      return;
    }
    const mayFail = chat.mode !== 'ok' || disk.mode !== 'ok';
    if (mayFail && (reply === null || row === 'ChartApiFileError')) return;
    if (reply === undefined || reply === null) throw new Error(`not opened: ${row ?? 'taken'}`);
    const { fileId } = reply;
    this.#open = { fileId, declared, openedMs: actors.clock.nowMs, kept: 0, running: false };
  }

  async #begin({ offset, appends, keeps }: Extract<Step, { do: 'begin' }>): Promise<void> {
    const { disk } = this.#world;
    const open = this.#open;
    const offsetBytes = offset < 0 ? (open?.kept ?? 0) : offset;
    const fileId = open?.fileId ?? '999';
    const places = this.#places === 'part' ? {} : { places: this.#places };
    const place = { ownerId: OWNER, fileId, offsetBytes };
    const command = { type: 'beginStream' as const, ...place, appends, keeps, ...places };
    const { reply, row } = await this.#ask(command);
    if (open === undefined) {
      expect('begin without a draft', row, 'InvalidID');
      return;
    }
    if (appends ? offsetBytes !== open.kept : offsetBytes > open.kept) {
      expect('elsewhere', reply, { begun: false, offsetBytes: open.kept });
      return;
    }
    // Only a cut segment is read.
    if (disk.mode === 'down' && (this.#places === 'part' || row !== undefined)) {
      expect('begin on a broken disk', row, 'FileStorageFailed');
      return;
    }
    this.#stream += 1;
    if (reply === undefined || !reply.begun) throw new Error(`not begun: ${row ?? JSON.stringify(reply)}`);
    expect('stream', reply.stream > 0, true);
    expect('crc', reply.crc32, crc32(content(fileId, offsetBytes)));
    if (this.#places === 'segments' && open.running)
      this.#late.push({ part: this.#part, keptBytes: open.kept });
    const { segment } = reply.key;
    this.#part = segment === undefined ? fileId : `${fileId}.${segment}`;
    if (this.#places !== 'pieces') disk.truncate(this.#part, offsetBytes);
    this.#kept = { beginBytes: offsetBytes, pieces: reply.segments ?? [] };
    this.#stream = reply.stream;
    Object.assign(open, { kept: offsetBytes, running: true });
  }

  /** Writes the bytes of a stream before it reports them. */
  #write(bytes: number): number {
    const open = this.#open;
    if (open === undefined || !open.running) return bytes;
    const sizeBytes = Math.max(open.kept, bytes);
    const { fileId } = open;
    // An object begins with what is read back.
    const from = this.#places === 'pieces' ? 0 : open.kept;
    if (this.#places !== 'pieces' || sizeBytes > this.#kept.beginBytes)
      this.#world.disk.write(this.#part, from, content(fileId, sizeBytes).subarray(from));
    return sizeBytes;
  }

  /** Returns the pieces that a stream reports for these bytes. */
  #listed(endBytes: number, sum: number): { readonly pieces?: readonly FileSegment[] } {
    if (this.#places !== 'pieces') return {};
    const own = [{ number: this.#stream, endBytes, crc32: sum, isTail: true as const }];
    return { pieces: endBytes > this.#kept.beginBytes ? own : this.#kept.pieces };
  }

  async #keep({ bytes, more, stale }: Extract<Step, { do: 'keep' }>): Promise<void> {
    const open = this.#open;
    const fileId = open?.fileId ?? '999';
    const receivedBytes = stale ? bytes : this.#write(bytes);
    const stream = stale ? this.#stream - 1 : this.#stream;
    const sum = crc32(content(fileId, receivedBytes));
    const listed = this.#listed(receivedBytes, sum);
    const kept = { fileId, stream, receivedBytes, crc32: sum, more, ...listed };
    const { row } = await this.#ask({ type: 'keepBytes', ...kept });
    if (this.#saysNothing('keep', row, stale) || open === undefined) return;
    open.kept = receivedBytes;
    if (!more) open.running = false;
  }

  async #finish({ bytes, stale }: Extract<Step, { do: 'finish' }>): Promise<void> {
    const { chat, disk } = this.#world;
    const open = this.#open;
    const fileId = open?.fileId ?? '999';
    const sizeBytes = stale ? bytes : this.#write(bytes);
    const stream = stale ? this.#stream - 1 : this.#stream;
    const sum = crc32(content(fileId, sizeBytes));
    const { row } = await this.#ask({
      type: 'finishBody',
      fileId,
      stream,
      sizeBytes,
      crc32: sum,
      ...this.#listed(sizeBytes, sum),
    });
    if (this.#saysNothing('finish', row, stale) || open === undefined) return;
    this.#open = undefined;
    const { declared } = open;
    if (declared !== null && sizeBytes !== declared) {
      expect('size', row, sizeBytes > declared ? 'WrongPart' : 'ShortPart');
    } else if (sizeBytes === 0) expect('empty', row, 'EmptyFile');
    // The bytes come first: a storage that fails keeps the module from being asked.
    else if (disk.mode !== 'ok')
      expect('failing disk', row, disk.mode === 'down' ? 'StorageFull' : 'FileStorageFailed');
    else if (chat.mode !== 'ok') expect('failing', row, 'ChartApiFileError');
    else {
      expect('finish', row, undefined);
      this.#finished.set(fileId, sizeBytes);
    }
  }

  async #end(stale: boolean): Promise<void> {
    const fileId = this.#open?.fileId ?? '999';
    const stream = stale ? this.#stream - 1 : this.#stream;
    await this.#ask({ type: 'endStream', fileId, stream });
    if (!stale && this.#open?.running === true) this.#open = undefined;
  }

  async #drop(): Promise<void> {
    const fileId = this.#open?.fileId ?? '999';
    const { row } = await this.#ask({ type: 'dropDraft', ownerId: OWNER, fileId });
    expect('drop', row, this.#open === undefined ? 'InvalidID' : undefined);
    this.#open = undefined;
  }

  /** The refusal of a command that does not count. */
  #saysNothing(what: string, row: ErrorName | undefined, stale: boolean): boolean {
    if (this.#open === undefined) expect(`${what} without a draft`, row, 'InvalidID');
    else if (stale) expect(`${what} of an older stream`, row, 'UploadConflict');
    else if (!this.#open.running) expect(`${what} without a stream`, row === undefined, false);
    else return false;
    return true;
  }

  async #compare(after: string): Promise<void> {
    const { actors, chat, disk } = this.#world;
    expect(`bugs after ${after}`, actors.bugs.length, 0);
    const open = this.#open;
    if (open !== undefined) {
      const query = { type: 'draft' as const, ownerId: OWNER, fileId: open.fileId };
      const view = await actors.system.query(draft, PLACE, query);
      if (!('phase' in view)) throw new Error(`complete after ${after}`);
      expect(`kept after ${after}`, view.receivedBytes, open.kept);
      expect(`phase after ${after}`, view.phase, open.running ? 'receiving' : 'pending');
      expect(`index after ${after}`, actors.system.lookup('draft', open.fileId), PLACE);
      expect(`message after ${after}`, chat.byFile(open.fileId)?.state, 'pending');
    }
    for (const [fileId, sizeBytes] of this.#finished) {
      expect(`message of ${fileId} after ${after}`, chat.byFile(fileId)?.state, 'complete');
      expect(`bytes of ${fileId} after ${after}`, disk.files.get(fileId), content(fileId, sizeBytes));
    }
  }

  /** All is well again and time passes: nothing is left but what was answered for. */
  async epilogue(): Promise<void> {
    const { actors, chat, disk } = this.#world;
    chat.mode = 'ok';
    disk.mode = 'ok';
    await actors.advance(3 * HOUR_MS);
    this.#open = undefined;
    await this.#compare('the end');
    const complete = [...chat.messages.values()].filter(({ state }) => state !== 'cancelled');
    expect('messages', complete.map(({ fileId }) => fileId).sort(), [...this.#finished.keys()].sort());
    expect('files', [...disk.files.keys()].sort(), [...this.#finished.keys()].sort());
    expect('parts', [...disk.parts.keys()], []);
    expect('drafts', actors.system.count('draft'), 0);
  }

  async #ask<T extends TypeIn<DraftProtocol['replies']>>(
    command: Asked<DraftProtocol, T>,
  ): Promise<{ reply?: DraftProtocol['replies'][T]; row?: ErrorName }> {
    try {
      return { reply: await this.#world.actors.system.ask<DraftProtocol, T>(draft, PLACE, command) };
    } catch (error) {
      if (error instanceof GatewayError) return { row: error.row };
      throw error;
    }
  }
}

function expect(what: string, found: unknown, wanted: unknown): void {
  const [a, b] = [found, wanted].map((value) =>
    Buffer.isBuffer(value) ? value.toString('hex') : JSON.stringify(value),
  );
  if (a !== b) throw new Error(`${what}: ${a}, expected ${b}`);
}

async function agrees(t: Test, places: Places): Promise<void> {
  t.setTimeout(120_000);
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const run = new Run(places);
      for (const step of history) await run.step(step);
      await run.epilogue();
    }),
    runs(RUNS),
  );
  t.pass();
}

// covers S167
t.test('draft: agrees with the reference in random histories', (t) => agrees(t, 'part'));

// covers C2
t.test('draft in segments: agrees with the reference although late streams write on', (t) =>
  agrees(t, 'segments'),
);

t.test('draft in pieces: agrees with the reference, and no crash takes a byte', (t) => agrees(t, 'pieces'));
