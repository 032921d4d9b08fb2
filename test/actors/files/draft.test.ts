/** Drafts of v2 uploads: the life cycle, its refusals, fencing, resume, removal, and every crash in between. */
import { crc32 } from 'node:zlib';
import t, { type Test } from 'tap';
import {
  type DraftView,
  draft,
  type OpenDraft,
  type OpenedDraft,
} from '../../../src/actors/files/v2/draft.ts';
import { type FinishedUpload, slotIdOf } from '../../../src/actors/files/v2/draft-state.ts';
import type { StreamBegun } from '../../../src/actors/files/v2/draft-streams.ts';
import type { ErrorName } from '../../../src/domain/errors.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { HOUR_MS, MINUTE_MS } from '../../../src/domain/time.ts';
import { createDraftWorld, type DraftWorld } from '../../support/files/draft-world.ts';

const OWNER = '501';
const PLACE = slotIdOf(OWNER, 0);
const BYTES = Buffer.from('the bytes of a file');
const CRC32 = crc32(BYTES);
const FACTS: OpenDraft = {
  type: 'openDraft',
  ownerId: OWNER,
  name: 'a.txt',
  sizeBytes: null,
  chatId: null,
  message: null,
  linkedMessageId: null,
  declaredCrc32: null,
};

async function open(world: DraftWorld, facts: Partial<OpenDraft> = {}): Promise<OpenedDraft> {
  const opened = await world.actors.system.ask(draft, PLACE, { ...FACTS, ...facts });
  if (opened === null) throw new Error('the place is taken');
  return opened;
}

async function begin(
  world: DraftWorld,
  fileId: string,
  at: { offsetBytes?: number; appends?: boolean; keeps?: boolean } = {},
): Promise<StreamBegun> {
  const command = {
    type: 'beginStream' as const,
    ownerId: OWNER,
    fileId,
    offsetBytes: 0,
    appends: false,
    keeps: false,
  };
  return await world.actors.system.ask(draft, PLACE, { ...command, ...at });
}

function streamOf(begun: StreamBegun): number {
  if (!begun.begun) throw new Error(`not begun: ${JSON.stringify(begun)}`);
  return begun.stream;
}

const NOTHING = Buffer.alloc(0);

interface Streaming {
  readonly facts?: Partial<OpenDraft>;
  readonly at?: Parameters<typeof begin>[2];
  /** Written to the part by the stream. */
  readonly bytes?: Buffer;
}

/** A draft whose first stream has begun. */
async function streaming({ facts, at, bytes = BYTES }: Streaming = {}) {
  const world = createDraftWorld();
  const { fileId } = await open(world, facts);
  const stream = streamOf(await begin(world, fileId, at));
  if (bytes.length > 0) world.disk.write(fileId, 0, bytes);
  return { world, fileId, stream };
}

async function finish(world: DraftWorld, fileId: string, stream: number, bytes: Uint8Array = BYTES) {
  const command = {
    type: 'finishBody' as const,
    fileId,
    stream,
    sizeBytes: bytes.length,
    crc32: crc32(bytes),
  };
  return await world.actors.system.ask(draft, PLACE, command);
}

async function view(world: DraftWorld, fileId: string): Promise<DraftView | FinishedUpload> {
  return await world.actors.system.query(draft, PLACE, { type: 'draft', ownerId: OWNER, fileId });
}

async function refused(promise: Promise<unknown>): Promise<ErrorName | undefined> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError) return error.row;
    throw error;
  }
}

/** Nothing of a file is left, and its slot is free. */
function checkGone(t: Test, world: DraftWorld, fileId: string): void {
  t.equal(world.chat.byFile(fileId)?.state, 'cancelled', 'the message is gone');
  t.notOk(world.disk.parts.has(fileId) || world.disk.files.has(fileId), 'no bytes');
  t.equal(world.actors.system.lookup('draft', fileId), undefined, 'no draft by that id');
}

t.test(
  'draft: pending, receiving, complete: published before the message, then the slot is free',
  async (t) => {
    const world = createDraftWorld();
    const { fileId, expiresMs } = await open(world, { sizeBytes: BYTES.length, declaredCrc32: 'deadbeef' });
    t.equal(expiresMs, world.actors.clock.nowMs + HOUR_MS);
    t.match(world.chat.byFile(fileId), {
      state: 'pending',
      file: { declaredCrc32: 'deadbeef', chatId: null },
    });
    t.equal(world.actors.system.lookup('draft', fileId), PLACE);
    t.match(await view(world, fileId), { phase: 'pending', receivedBytes: 0, sizeBytes: BYTES.length });
    const begun = await begin(world, fileId);
    t.match(begun, { begun: true, stream: 1, offsetBytes: 0, crc32: 0, key: { owner: OWNER, fileId } });
    t.match(await view(world, fileId), { phase: 'receiving' });
    world.disk.write(fileId, 0, BYTES);
    t.same(await finish(world, fileId, 1), { fileId, sizeBytes: BYTES.length, crc32: CRC32 });
    t.match(world.chat.byFile(fileId), { state: 'complete', sizeBytes: BYTES.length, crc32: CRC32 });
    t.same(world.disk.files.get(fileId), BYTES);
    const finished = { fileId, sizeBytes: BYTES.length, crc32: CRC32 };
    t.match(await view(world, fileId), finished);
    t.match(await begin(world, fileId), { begun: false, finished });
    t.equal(world.actors.system.lookup('draft', fileId), undefined);
    const next = await open(world);
    t.not(next.fileId, fileId);
    t.equal(streamOf(await begin(world, next.fileId)), 2, 'the fencing number keeps rising');
  },
);

// covers P13
t.test(
  'draft: refusals in the order name, size, module; nothing is asked of the module before',
  async (t) => {
    const world = createDraftWorld();
    const cases: [Partial<OpenDraft>, ErrorName][] = [
      [{ name: '', sizeBytes: 0 }, 'InvalidFileName'],
      [{ name: '../x', sizeBytes: 2 ** 40 }, 'InvalidFileName'],
      [{ sizeBytes: 0 }, 'EmptyFile'],
      [{ sizeBytes: 20_971_521 }, 'MaxFileSize'],
      [{ sizeBytes: 5 * 2 ** 30 }, 'MaxFileSize'],
    ];
    for (const [facts, row] of cases) t.equal(await refused(open(world, facts)), row, JSON.stringify(facts));
    t.same(world.chat.calls, []);
    world.chat.outsiders.add(OWNER);
    t.equal(await refused(open(world)), 'Forbidden');
    world.chat.outsiders.clear();
    t.ok(await open(world, { sizeBytes: 20_971_520 }), 'the limit itself is accepted, the place was free');
  },
);

t.test('draft: an unknown linked message leaves nothing to remove, and the slot free', async (t) => {
  const world = createDraftWorld();
  world.chat.unknownMessages.add('12');
  t.equal(await refused(open(world, { linkedMessageId: '12' })), 'LinkedMessageNotFound');
  await world.actors.advance(MINUTE_MS);
  t.same(world.chat.calls, ['create'], 'no message is taken back');
  t.ok(await open(world, { linkedMessageId: '13' }), 'the place was free');
});

t.test('draft: a taken slot answers null and changes nothing', async (t) => {
  const world = createDraftWorld();
  const { fileId } = await open(world);
  t.equal(await world.actors.system.ask(draft, PLACE, FACTS), null);
  t.match(await view(world, fileId), { phase: 'pending' });
});

t.test(
  'draft: a module that fails at the opening: 1310, and its message is cancelled once it answers',
  async (t) => {
    for (const mode of ['down', 'cut'] as const) {
      const world = createDraftWorld();
      world.chat.mode = mode;
      t.equal(await refused(open(world)), 'ChartApiFileError');
      await world.actors.advance(10 * MINUTE_MS);
      t.equal(await world.actors.system.ask(draft, PLACE, FACTS), null, 'the place waits for the removal');
      world.chat.mode = 'ok';
      await world.actors.advance(10 * MINUTE_MS);
      t.ok([...world.chat.messages.values()].every(({ state }) => state === 'cancelled'));
      t.ok(await open(world), 'the place is free again');
    }
  },
);

t.test('draft: a foreign or unknown file is 1305, like one that is not there', async (t) => {
  const world = createDraftWorld();
  const { fileId } = await open(world);
  const command = { type: 'beginStream' as const, fileId, offsetBytes: 0, appends: false, keeps: false };
  const foreign = world.actors.system.ask(draft, PLACE, { ...command, ownerId: '502' });
  t.equal(await refused(foreign), 'InvalidID');
  t.equal(await refused(begin(world, '77')), 'InvalidID');
  t.equal(
    await refused(world.actors.system.ask(draft, PLACE, { type: 'dropDraft', ownerId: '502', fileId })),
    'InvalidID',
  );
  t.match(await view(world, fileId), { phase: 'pending' });
});

t.test('draft: a size that is not the declared one is refused and all of it removed', async (t) => {
  const cases: [number | null, Buffer, ErrorName][] = [
    [BYTES.length - 1, BYTES, 'WrongPart'],
    [BYTES.length + 1, BYTES, 'ShortPart'],
    [null, Buffer.alloc(0), 'EmptyFile'],
    [null, Buffer.alloc(20_971_521), 'MaxFileSize'],
  ];
  for (const [sizeBytes, bytes, row] of cases) {
    const { world, fileId, stream } = await streaming({ facts: { sizeBytes }, bytes: NOTHING });
    world.disk.write(fileId, 0, bytes);
    t.equal(await refused(finish(world, fileId, stream, bytes)), row);
    await world.actors.settle();
    checkGone(t, world, fileId);
  }
});

// covers R27
t.test('draft: a stream that ends with nothing to keep takes message and bytes with it', async (t) => {
  const { world, fileId, stream } = await streaming();
  await world.actors.system.ask(draft, PLACE, { type: 'endStream', fileId, stream });
  await world.actors.settle();
  checkGone(t, world, fileId);
});

// covers R70
t.test('draft: a newer stream fences every command of the older one', async (t) => {
  const { world, fileId, stream: older } = await streaming({ bytes: NOTHING });
  const newer = streamOf(await begin(world, fileId));
  t.ok(newer > older);
  world.disk.write(fileId, 0, BYTES);
  t.equal(await refused(finish(world, fileId, older)), 'UploadConflict');
  const kept = { type: 'keepBytes' as const, fileId, stream: older, receivedBytes: 5, crc32: 1, more: false };
  t.equal(await refused(world.actors.system.ask(draft, PLACE, kept)), 'UploadConflict');
  await world.actors.system.ask(draft, PLACE, { type: 'endStream', fileId, stream: older });
  t.match(await view(world, fileId), { phase: 'receiving', receivedBytes: 0 }, 'its end ends nothing');
  t.ok(await finish(world, fileId, newer));
});

t.test('draft: two beginnings at once: one begins, or both in order, never the same number', async (t) => {
  const world = createDraftWorld();
  const { fileId } = await open(world);
  const both = await Promise.allSettled([begin(world, fileId), begin(world, fileId)]);
  const begun = both.flatMap((each) => (each.status === 'fulfilled' ? [streamOf(each.value)] : []));
  t.same(begun, [1]);
  const [, second] = both;
  t.match(second, { status: 'rejected', reason: { row: 'UploadConflict' } });
});

t.test('draft: kept bytes are gone on from at their end alone, or written anew from before it', async (t) => {
  const {
    world,
    fileId,
    stream: first,
  } = await streaming({ facts: { sizeBytes: BYTES.length }, at: { keeps: true }, bytes: NOTHING });
  world.disk.write(fileId, 0, BYTES.subarray(0, 10));
  const kept = { type: 'keepBytes' as const, fileId, stream: first, receivedBytes: 10, more: false };
  await world.actors.system.ask(draft, PLACE, { ...kept, crc32: crc32(BYTES.subarray(0, 10)) });
  t.match(await view(world, fileId), { phase: 'pending', receivedBytes: 10, keeps: true });
  for (const offsetBytes of [0, 9, 11]) {
    t.same(await begin(world, fileId, { offsetBytes, appends: true }), { begun: false, offsetBytes: 10 });
  }
  t.same(await begin(world, fileId, { offsetBytes: 11 }), { begun: false, offsetBytes: 10 }, 'no gap');
  const again = await begin(world, fileId, { offsetBytes: 4, keeps: true });
  t.match(again, { begun: true, offsetBytes: 4, crc32: crc32(BYTES.subarray(0, 4)) });
  t.match(await view(world, fileId), { receivedBytes: 4 });
  world.disk.write(fileId, 4, BYTES.subarray(4));
  t.ok(await finish(world, fileId, streamOf(again)));
  t.same(world.disk.files.get(fileId), BYTES);
});

t.test('draft: kept bytes that a crash took are noticed by their checksum: from the beginning', async (t) => {
  const { world, fileId, stream } = await streaming({ at: { keeps: true } });
  const kept = {
    type: 'keepBytes' as const,
    fileId,
    stream,
    receivedBytes: BYTES.length,
    crc32: CRC32,
    more: false,
  };
  await world.actors.system.ask(draft, PLACE, kept);
  world.disk.write(fileId, 3, Buffer.from('\0'));
  await world.actors.restart();
  const at = { offsetBytes: BYTES.length, appends: true, keeps: true };
  t.same(await begin(world, fileId, at), { begun: false, offsetBytes: 0 });
  t.match(await view(world, fileId), { receivedBytes: 0 });
  t.ok(streamOf(await begin(world, fileId, { keeps: true })));
});

t.test('draft: a node of an earlier build continues kept segments, and says so in its words', async (t) => {
  const world = createDraftWorld();
  const { fileId } = await open(world);
  const { system } = world.actors;
  const command = { type: 'beginStream' as const, ownerId: OWNER, fileId, appends: true, keeps: true };
  const ask = (offsetBytes: number, words: object) =>
    system.ask(draft, PLACE, { ...command, offsetBytes, ...words });
  const first = await ask(0, { places: 'segments' });
  t.match(first, { key: { segment: 1 }, segments: [{ number: 1, endBytes: 0 }] });
  const kept = { fileId, stream: streamOf(first), receivedBytes: 9, crc32: 7, more: false };
  await system.ask(draft, PLACE, { type: 'keepBytes', ...kept });
  t.match(await ask(9, { segmented: true }), {
    begun: true,
    offsetBytes: 9,
    key: { segment: 1 },
    segments: [{ number: 1, endBytes: 9 }],
  });
});

t.test('draft: module down at the completion: 1310, bytes removed at once, the message later', async (t) => {
  const { world, fileId, stream } = await streaming();
  world.chat.mode = 'down';
  t.equal(await refused(finish(world, fileId, stream)), 'ChartApiFileError');
  await world.actors.settle();
  t.notOk(world.disk.parts.has(fileId) || world.disk.files.has(fileId), 'no bytes while it is down');
  world.chat.mode = 'ok';
  await world.actors.advance(MINUTE_MS);
  checkGone(t, world, fileId);
  t.ok(await open(world), 'the place is free');
});

t.test(
  'draft: an answer that was lost at the completion: 1310, and the message does not stay behind',
  async (t) => {
    const { world, fileId, stream } = await streaming();
    world.chat.mode = 'cut';
    t.equal(await refused(finish(world, fileId, stream)), 'ChartApiFileError');
    world.chat.mode = 'ok';
    await world.actors.advance(MINUTE_MS);
    checkGone(t, world, fileId);
  },
);

t.test('draft: a completion after a restart waits for a module that is away: it may be done', async (t) => {
  const { world, fileId, stream } = await streaming();
  world.disk.late = true;
  t.equal(await refused(finish(world, fileId, stream)), 'TaskTimedOut');
  await world.actors.restart();
  world.disk.late = undefined;
  world.chat.mode = 'cut';
  await world.actors.advance(MINUTE_MS);
  t.match(await view(world, fileId), { phase: 'completing' });
  t.same(world.disk.files.get(fileId), BYTES);
  world.chat.mode = 'ok';
  await world.actors.advance(10_000);
  t.same(world.disk.files.get(fileId), BYTES);
  t.match(world.chat.byFile(fileId), { state: 'complete' });
});

t.test(
  'draft: an owner who left the chat gets Forbidden, a full disk at the completion is 1013',
  async (t) => {
    const cases: [(world: DraftWorld) => unknown, ErrorName][] = [
      [({ chat }) => chat.outsiders.add(OWNER), 'Forbidden'],
      [
        ({ disk }) => {
          disk.mode = 'down';
        },
        'StorageFull',
      ],
    ];
    for (const [damage, row] of cases) {
      const { world, fileId, stream } = await streaming();
      damage(world);
      t.equal(await refused(finish(world, fileId, stream)), row);
      t.not(world.chat.byFile(fileId)?.state, 'complete');
      world.disk.mode = 'ok';
      await world.actors.advance(MINUTE_MS);
      checkGone(t, world, fileId);
    }
  },
);

t.test('draft: a disk without room refuses with 1013 before the chat module is asked', async (t) => {
  const world = createDraftWorld();
  world.disk.hasRoom = false;
  t.equal(await refused(open(world)), 'StorageFull');
  t.same(world.chat.calls, []);
  world.disk.hasRoom = true;
  const { fileId } = await open(world);
  t.same(world.chat.calls, ['create'], 'its place was free again');
  t.equal(world.chat.byFile(fileId)?.state, 'pending');
  t.equal(world.disk.held.size, 0, 'a draft without bytes holds no room');
});

t.test('draft: expires by its setting, in every phase before the last byte', async (t) => {
  const prepare: ((world: DraftWorld, fileId: string) => unknown)[] = [
    () => undefined,
    (world, fileId) => begin(world, fileId),
    (world, fileId) => begin(world, fileId, { keeps: true }),
  ];
  for (const reach of prepare) {
    const world = createDraftWorld();
    world.actors.settings.set('DraftLifetimeSeconds', 120);
    const { fileId } = await open(world);
    await reach(world, fileId);
    await world.actors.advance(119_000);
    t.equal(world.chat.byFile(fileId)?.state, 'pending');
    await world.actors.advance(2_000);
    checkGone(t, world, fileId);
    t.equal(await refused(finish(world, fileId, 1)), 'InvalidID', 'its last word comes too late');
  }
});

t.test('draft: a crash while the message was asked for cancels it within two minutes', async (t) => {
  const world = createDraftWorld();
  const create = world.chat.create.bind(world.chat);
  world.chat.create = async (file) => {
    await create(file);
    return new Promise(() => {});
  };
  void refused(open(world));
  await world.actors.settle();
  t.equal(world.chat.messages.size, 1, 'the module has it, its answer is on the way');
  await world.actors.restart();
  await world.actors.advance(2 * MINUTE_MS);
  t.same(
    [...world.chat.messages.values()].map(({ state }) => state),
    ['cancelled'],
  );
  world.chat.create = create;
  t.ok(await open(world), 'the place is free');
});

// covers R26 S152
t.test('draft: a crash after the last byte, at any step, still ends in the complete file', async (t) => {
  for (let steps = 0; steps < 12; steps += 1) {
    const { world, fileId, stream } = await streaming();
    let answered = false;
    finish(world, fileId, stream).then(
      () => {
        answered = true;
      },
      () => {},
    );
    for (let step = 0; step < steps; step += 1) await new Promise((resolve) => setImmediate(resolve));
    const acknowledged = answered;
    await world.actors.restart();
    await world.actors.advance(2 * HOUR_MS);
    const { state } = world.chat.byFile(fileId) ?? {};
    if (state === 'complete') t.same(world.disk.files.get(fileId), BYTES, `crash after ${steps} steps`);
    else {
      t.notOk(acknowledged, 'an answer of 200 is kept');
      checkGone(t, world, fileId);
    }
  }
});

t.test('draft: one that was completing at a power cut is not published with other bytes', async (t) => {
  for (const damaged of [false, true]) {
    const { world, fileId, stream } = await streaming();
    world.disk.publishes = false;
    finish(world, fileId, stream).then(
      () => t.fail('a caller of a crash gets no answer'),
      () => {},
    );
    await world.actors.settle();
    if (damaged) world.disk.write(fileId, 0, Buffer.alloc(BYTES.length));
    world.disk.publishes = true;
    await world.actors.restart();
    await world.actors.settle();
    if (damaged) checkGone(t, world, fileId);
    else t.same(world.disk.files.get(fileId), BYTES);
  }
});

t.test(
  'draft: a publish that is not done in time is no failure: 503, then the file is complete',
  async (t) => {
    for (const late of [false, true]) {
      const { world, fileId, stream } = await streaming();
      world.disk.late = late;
      t.equal(await refused(finish(world, fileId, stream)), 'TaskTimedOut');
      t.equal(await refused(begin(world, fileId)), 'UploadConflict', 'it is still being published');
      await world.actors.restart();
      await world.actors.settle();
      t.match(await view(world, fileId), { phase: 'completing' });
      world.disk.late = undefined;
      await world.actors.advance(10_000);
      t.same(world.disk.files.get(fileId), BYTES);
      t.match(world.chat.byFile(fileId), { state: 'complete' });
      const finished = { type: 'finished' as const, ownerId: OWNER, fileId };
      t.match(await world.actors.system.query(draft, PLACE, finished), { fileId, sizeBytes: BYTES.length });
    }
  },
);

t.test('draft: an owner gives one up: message and bytes go, also of kept bytes', async (t) => {
  const { world, fileId, stream } = await streaming({ at: { keeps: true } });
  await world.actors.system.ask(draft, PLACE, { type: 'dropDraft', ownerId: OWNER, fileId });
  await world.actors.settle();
  checkGone(t, world, fileId);
  t.equal(await refused(finish(world, fileId, stream)), 'InvalidID');
});
