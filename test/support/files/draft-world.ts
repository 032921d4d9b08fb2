/**
 * The outside of a draft for tests: a chat module and a disk with real state, each of which can be made to fail, and the
 * actors between them. Bytes on the disk survive a restart; what was not synced may be lost with it.
 */
import { crc32 } from 'node:zlib';
import { draft } from '../../../src/actors/files/v2/draft.ts';
import type { ChatFilePort, FilePort, PendingFile, PortResult } from '../../../src/actors/runtime/ports.ts';
import type { ErrorName } from '../../../src/domain/errors.ts';
import type { FileKey } from '../../../src/domain/files/files.ts';
import {
  type FileSegment,
  type SegmentRange,
  segmentKey,
  segmentRanges,
} from '../../../src/domain/files/segments.ts';
import { HOUR_MS } from '../../../src/domain/time.ts';
import { createTestActors, type TestActors } from '../actors/actors.ts';

/** `cut`: the work is done and the answer lost. */
export type Mode = 'ok' | 'down' | 'cut';

export interface FakeMessage {
  readonly file: PendingFile;
  readonly fileId: string;
  state: 'pending' | 'complete' | 'cancelled';
  sizeBytes: number;
  crc32: number;
}

/** Idle actors are not what is looked for here; hours of sweeps would be. */
const SWEEP_MS = 24 * HOUR_MS;
const OK: PortResult<null> = { ok: true, value: null };
const fail = (error: ErrorName): PortResult<never> => ({ ok: false, error });

export class FakeChat implements ChatFilePort {
  readonly messages = new Map<string, FakeMessage>();
  readonly cancelledKeys = new Set<string>();
  readonly calls: string[] = [];
  mode: Mode = 'ok';
  readonly outsiders = new Set<string>();
  readonly unknownMessages = new Set<string>();
  #lastId = 1_000;

  async create(file: PendingFile): Promise<PortResult<{ readonly fileId: string }>> {
    this.calls.push('create');
    if (this.mode === 'down') return fail('ChartApiFileError');
    if (this.outsiders.has(file.userId)) return fail('Forbidden');
    if (this.unknownMessages.has(file.linkedMessageId ?? '')) return fail('LinkedMessageNotFound');
    if (this.cancelledKeys.has(file.uploadKey)) return fail('ChartApiFileError');
    const known = this.messages.get(file.uploadKey);
    if (known === undefined) this.#lastId += 1;
    const fileId = known?.fileId ?? String(this.#lastId);
    if (known === undefined) {
      this.messages.set(file.uploadKey, { file, fileId, state: 'pending', sizeBytes: 0, crc32: 0 });
    }
    return this.mode === 'cut' ? fail('ChartApiFileError') : { ok: true, value: { fileId } };
  }

  async complete(file: { fileId: string; userId: string; sizeBytes: number; crc32: number }) {
    this.calls.push('complete');
    if (this.mode === 'down') return fail('ModuleFailed');
    if (this.outsiders.has(file.userId)) return fail('Forbidden');
    const message = this.byFile(file.fileId);
    if (message === undefined || message.state === 'cancelled') return fail('ChartApiFileError');
    Object.assign(message, { state: 'complete', sizeBytes: file.sizeBytes, crc32: file.crc32 });
    return this.mode === 'cut' ? fail('ModuleFailed') : OK;
  }

  async cancel(uploadKey: string): Promise<PortResult<null>> {
    this.calls.push('cancel');
    if (this.mode === 'down') return fail('ChartApiFileError');
    this.cancelledKeys.add(uploadKey);
    const message = this.messages.get(uploadKey);
    if (message !== undefined) message.state = 'cancelled';
    return this.mode === 'cut' ? fail('ChartApiFileError') : OK;
  }

  byFile(fileId: string): FakeMessage | undefined {
    return [...this.messages.values()].find((message) => message.fileId === fileId);
  }
}

/** The name of a part, as a segment has one of its own. */
function nameOf({ fileId, segment }: FileKey): string {
  return segment === undefined ? fileId : `${fileId}.${segment}`;
}

export class FakeDisk implements FilePort {
  readonly isShared = false;
  /** Parts stand for the objects of a bucket, which go with their file. */
  isDurable = false;
  readonly parts = new Map<string, Buffer>();
  readonly files = new Map<string, Buffer>();
  /** Holders of room. */
  readonly held = new Set<string>();
  hasRoom = true;
  mode: Mode = 'ok';
  /** False: publishing never ends, as a crash leaves it. */
  publishes = true;
  /** The publish is not done in time; with `true` it was done all the same. */
  late: boolean | undefined;

  /** Writes like a stream. */
  write(fileId: string, positionBytes: number, bytes: Uint8Array): void {
    const before = this.parts.get(fileId) ?? Buffer.alloc(0);
    const after = Buffer.alloc(Math.max(before.length, positionBytes + bytes.length));
    before.copy(after);
    after.set(bytes, positionBytes);
    this.parts.set(fileId, after);
  }

  /** Cuts the part like a stream that begins before its end. */
  truncate(fileId: string, sizeBytes: number): void {
    this.parts.set(fileId, (this.parts.get(fileId) ?? Buffer.alloc(0)).subarray(0, sizeBytes));
  }

  async create({ fileId }: FileKey): Promise<PortResult<null>> {
    if (this.mode === 'down') return fail('FileStorageFailed');
    this.parts.set(fileId, Buffer.alloc(0));
    return OK;
  }

  async publish({ fileId }: FileKey, sizeBytes: number): Promise<PortResult<null>> {
    if (this.mode === 'down') return fail('StorageFull');
    if (!this.publishes) return await new Promise<never>(() => {});
    if (this.late === false) return fail('TaskTimedOut');
    const part = this.parts.get(fileId);
    if (part !== undefined && part.length === sizeBytes) {
      this.files.set(fileId, part);
      this.parts.delete(fileId);
    } else if (this.files.get(fileId)?.length !== sizeBytes) return fail('FileStorageFailed');
    if (this.late === true) return fail('TaskTimedOut');
    return this.mode === 'cut' ? fail('FileStorageFailed') : OK;
  }

  /** No chunk of a draft is replaced. */
  async publishCopy(): Promise<PortResult<readonly number[]>> {
    return fail('FileStorageFailed');
  }

  /** No draft has a table. */
  async readTable(): Promise<PortResult<readonly (number | null)[]>> {
    return { ok: true, value: [] };
  }

  async remove({ fileId }: FileKey): Promise<PortResult<null>> {
    if (this.mode === 'down') return fail('FileStorageFailed');
    this.parts.delete(fileId);
    this.files.delete(fileId);
    if (this.isDurable) this.#removeObjects(fileId);
    return this.mode === 'cut' ? fail('FileStorageFailed') : OK;
  }

  async reserve(holder: string): Promise<PortResult<null>> {
    if (!this.hasRoom) return fail('StorageFull');
    this.held.add(holder);
    return OK;
  }

  release(holder: string): void {
    this.held.delete(holder);
  }

  async publishSegments(key: FileKey, segments: readonly FileSegment[]): Promise<PortResult<boolean>> {
    const ranges = segmentRanges(segments).map((range) => ({
      ...range,
      part: this.parts.get(nameOf(segmentKey(key, range.number))),
    }));
    const sizeBytes = ranges.at(-1)?.endBytes ?? 0;
    if (ranges.every(({ part }) => part !== undefined)) {
      const bytes = ranges.map(
        ({ part, beginBytes, endBytes }) => part?.subarray(beginBytes, endBytes) ?? Buffer.alloc(0),
      );
      const whole = Buffer.concat(bytes);
      if (whole.length !== sizeBytes || crc32(whole) !== segments.at(-1)?.crc32)
        return { ok: true, value: false };
      this.parts.set(key.fileId, whole);
    }
    const published = await this.publish(key, sizeBytes);
    return published.ok ? { ok: true, value: true } : published;
  }

  async removeSegments(key: FileKey, numbers: readonly number[]): Promise<PortResult<null>> {
    if (this.mode === 'down') return fail('FileStorageFailed');
    for (const number of numbers) this.parts.delete(nameOf(segmentKey(key, number)));
    if (this.isDurable) this.#removeObjects(key.fileId);
    return this.mode === 'cut' ? fail('FileStorageFailed') : OK;
  }

  #removeObjects(fileId: string): void {
    for (const name of this.parts.keys()) if (name.startsWith(`${fileId}.`)) this.parts.delete(name);
  }

  async hashSegment(key: FileKey, { number, beginBytes }: SegmentRange, endBytes: number) {
    const range = { positionBytes: beginBytes, lengthBytes: endBytes - beginBytes };
    const hashed = await this.hashRanges(segmentKey(key, number), [range]);
    return hashed.ok ? { ok: true as const, value: hashed.value[0] } : hashed;
  }

  async hashRanges(key: FileKey, ranges: readonly { positionBytes: number; lengthBytes: number }[]) {
    if (this.mode === 'down') return fail('FileStorageFailed');
    const part = this.parts.get(nameOf(key));
    const value = ranges.map(({ positionBytes, lengthBytes }) =>
      part === undefined || part.length < positionBytes + lengthBytes
        ? undefined
        : crc32(part.subarray(positionBytes, positionBytes + lengthBytes)),
    );
    return { ok: true as const, value };
  }
}

export interface DraftWorld {
  readonly chat: FakeChat;
  readonly disk: FakeDisk;
  readonly actors: TestActors;
}

export function createDraftWorld(): DraftWorld {
  const chat = new FakeChat();
  const disk = new FakeDisk();
  const ports = {
    workers: { run: async () => ({ ok: false, error: 'InternalError' }) as const },
    chatFiles: chat,
    files: disk,
  };
  return { chat, disk, actors: createTestActors({ kinds: [draft], ports, limits: { sweepMs: SWEEP_MS } }) };
}
