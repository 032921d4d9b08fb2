/** Bodies that arrive before they are accepted: nothing is lost, nothing is out of order, nothing is left behind. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { GatewayError } from '../../../../src/domain/errors.ts';
import { readUploadPlan } from '../../../../src/domain/files/upload-plan.ts';
import type { FileStorage } from '../../../../src/io/files/storage/port.ts';
import {
  type PrebufferBounds,
  PrebufferedBody,
  type PrebufferTotals,
} from '../../../../src/io/files/upload/prebuffered-body.ts';
import { BodyReceiver } from '../../../../src/io/files/upload/receiver.ts';
import { inlineWorkers } from '../../../support/account.ts';
import { runs } from '../../../support/depth.ts';
import { OWNER_ID, PERSON_HEADERS, startDrafts } from '../../../support/files/drafts.ts';
import { temporaryFolder } from '../../../support/files/file-storage.ts';
import { FakeBody } from '../../../support/files/incoming-body.ts';
import { rejectsWith } from '../../../support/rejections.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

function setUp(t: Test, bounds: Partial<PrebufferBounds> = {}) {
  const folder = temporaryFolder(t);
  const totals: PrebufferTotals = { memoryBytes: 0, fileBytes: 0, overflowBytes: 0 };
  const limits = {
    folder,
    memoryBytesMax: 8 * MIB,
    fileBytesMax: 100 * MIB,
    standsStill: () => false,
    ...bounds,
  };
  const body = new FakeBody();
  return { body, totals, folder, hold: (from = body) => new PrebufferedBody(from, limits, totals) };
}

/** Records what it gets; `wants` decides after each piece whether the next one follows. */
function newSink(held: PrebufferedBody, wants: () => boolean = () => true) {
  const pieces: Buffer[] = [];
  const heard: string[] = [];
  return {
    heard,
    bytes: () => Buffer.concat(pieces),
    sink: {
      data(bytes: Uint8Array) {
        pieces.push(Buffer.from(bytes));
        if (!wants()) held.pause();
      },
      end: () => heard.push('end'),
      lost: () => heard.push('lost'),
    },
  };
}

t.test('prebuffered body: earlier bytes reach the reader in order, through memory or a file', async (t) => {
  for (const sizes of [[], [10], [512 * KIB], [400 * KIB, 200 * KIB], [2 * MIB, 1, 3 * MIB]]) {
    const { body, totals, folder, hold } = setUp(t);
    const held = hold();
    const bytes = randomBytes(sizes.reduce((sum, size) => sum + size, 0) + 5);
    let at = 0;
    for (const size of sizes) {
      body.send(bytes.subarray(at, at + size));
      at += size;
      t.ok(body.paused, 'the client is asked to wait');
      t.ok(totals.memoryBytes <= 512 * KIB);
    }
    t.same(readdirSync(folder), [], 'the file has no name');
    const { sink, heard, bytes: got } = newSink(held);
    held.read(sink);
    t.notOk(body.paused);
    body.send(bytes.subarray(at));
    body.end();
    t.same(heard, ['end']);
    t.ok(got().equals(bytes), sizes.join());
    t.match(totals, { memoryBytes: 0, fileBytes: 0 });
    held.release();
  }
});

// covers S7
t.test(
  'prebuffered body: any pieces, any moment of reading, any reader: the bytes once, in order',
  async (t) => {
    const { totals, hold } = setUp(t, { memoryBytesMax: 300 * KIB });
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(
          fc.array(fc.integer({ min: 0, max: 400 * KIB }), { maxLength: 12 }),
          fc.nat(12),
          fc.infiniteStream(fc.boolean()),
          fc.boolean(),
          (sizes, readAt, answers, complete) => {
            const body = new FakeBody();
            const held = hold(body);
            const answer = () => answers.next().value === true;
            const reader = newSink(held, answer);
            const bytes = randomBytes(sizes.reduce((sum, size) => sum + size, 0));
            let at = 0;
            for (const [index, size] of sizes.entries()) {
              if (index === readAt) held.read(reader.sink);
              body.send(bytes.subarray(at, at + size));
              at += size;
              if (index >= readAt && answer()) held.resume();
            }
            if (complete) body.end();
            else body.lose();
            if (readAt >= sizes.length) held.read(reader.sink);
            while (reader.heard.length === 0) held.resume();
            held.release();
            const rightEnd = reader.heard.join() === (complete ? 'end' : 'lost');
            return (
              rightEnd && reader.bytes().equals(bytes) && totals.memoryBytes === 0 && totals.fileBytes === 0
            );
          },
        ),
        runs(),
      ),
    );
  },
);

t.test('prebuffered body: a body that is not read, or is discarded, leaves nothing', async (t) => {
  const { body, totals, hold } = setUp(t);
  const unread = hold();
  body.send(randomBytes(3 * MIB));
  t.match(totals, { fileBytes: 3 * MIB, overflowBytes: 3 * MIB });
  unread.release();
  t.match(totals, { memoryBytes: 0, fileBytes: 0 });
  body.send(randomBytes(1_000));
  t.match(totals, { memoryBytes: 0, fileBytes: 0 });
  t.notOk(body.discarded, 'the answer does that');

  const other = new FakeBody();
  const held = hold(other);
  other.send(randomBytes(3 * MIB));
  const reader = newSink(held, () => {
    held.discard();
    return true;
  });
  held.read(reader.sink);
  t.ok(other.discarded);
  t.ok(reader.bytes().length < 3 * MIB, 'nothing follows');
  t.same(reader.heard, []);
  t.match(totals, { memoryBytes: 0, fileBytes: 0 });
});

t.test('prebuffered body: bounds and a disk that fails are errors for the reader', async (t) => {
  const full = setUp(t, { fileBytesMax: MIB });
  const held = full.hold();
  full.body.send(randomBytes(2 * MIB));
  t.ok(full.body.discarded);
  t.throws(() => held.read(newSink(held).sink), { row: 'Overloaded' } as unknown as Error);
  t.match(full.totals, { memoryBytes: 0, fileBytes: 0 });

  const gone = setUp(t, { folder: '/nowhere' });
  const other = gone.hold();
  gone.body.send(randomBytes(2 * MIB));
  t.throws(() => other.read(newSink(other).sink), { row: 'FileStorageFailed' } as unknown as Error);
});

// covers S177
t.test(
  'prebuffered body: what does not fit into memory is refused while the disk does not answer',
  async (t) => {
    const { body, folder, hold, totals } = setUp(t, { standsStill: () => true });
    const held = hold();
    body.send(randomBytes(400 * KIB));
    held.check();
    body.send(randomBytes(400 * KIB));
    t.ok(body.discarded);
    t.throws(() => held.check(), { row: 'TaskTimedOut' } as unknown as Error);
    t.match(totals, { memoryBytes: 0, fileBytes: 0, overflowBytes: 0 });
    t.same(readdirSync(folder), []);
  },
);

t.test('receiver: prebuffer delivers the body and forgets it, whatever the result of the work', async (t) => {
  const folder = temporaryFolder(t);
  const receiver = new BodyReceiver(inlineWorkers().workers, { folder });
  const body = new FakeBody();
  const refused = receiver.prebuffer(body, async () => {
    throw new Error('not yours');
  });
  body.send(randomBytes(2 * MIB));
  await t.rejects(refused, /not yours/);
  t.match(receiver.counters().prebuffered, { memoryBytes: 0, fileBytes: 0 });
  t.ok(existsSync(folder));
  t.same(readdirSync(folder), []);
});

t.test(
  'receiver: bytes that do not fit while the reader pauses are an error, not a client that left',
  async (t) => {
    const bounds = { memoryBytesMax: 0, fileBytesMax: MIB };
    const receiver = new BodyReceiver(inlineWorkers().workers, {
      folder: temporaryFolder(t),
      prebuffer: bounds,
    });
    for (const rejects of [false, true]) {
      const body = new FakeBody();
      const answer = receiver.prebuffer(body, async (prebuffered) => {
        const reader = newSink(prebuffered, () => false);
        await new Promise(setImmediate);
        prebuffered.read(reader.sink);
        body.send(randomBytes(1));
        t.same(reader.heard, ['lost']);
        if (rejects) throw new Error('the body was cut off');
      });
      body.send(randomBytes(MIB));
      await rejectsWith(t, answer, 'Overloaded');
      t.ok(body.discarded);
      t.match(receiver.counters().prebuffered, { memoryBytes: 0, fileBytes: 0 });
    }
  },
);

t.test('receiver: a refusal that no byte decided stays when the bytes do not fit', async (t) => {
  const receiver = new BodyReceiver(inlineWorkers().workers, {
    folder: temporaryFolder(t),
    prebuffer: { memoryBytesMax: 0, fileBytesMax: 0 },
  });
  const body = new FakeBody();
  const refused = receiver.prebuffer(body, async () => {
    await new Promise(setImmediate);
    throw new GatewayError('WrongPart');
  });
  body.send(randomBytes(1));
  await rejectsWith(t, refused, 'WrongPart');
  const other = new FakeBody();
  const answered = receiver.prebuffer(other, async () => {
    await new Promise(setImmediate);
    return 'elsewhere';
  });
  other.send(randomBytes(1));
  t.equal(await answered, 'elsewhere');
});

t.test(
  'receiver: bytes that do not fit between the begin of a stream and its reader leave the draft open',
  async (t) => {
    const body = new FakeBody();
    let leases = 0;
    const drafts = await startDrafts(t, {
      prebuffer: { memoryBytesMax: 0, fileBytesMax: 0 },
      storage: (inner) =>
        new Proxy(inner, {
          get(target, name: keyof FileStorage) {
            const member = target[name];
            if (typeof member !== 'function') return member;
            if (name === 'lease') {
              leases += 1;
              body.send(Buffer.from('hello'));
            }
            return member.bind(target);
          },
        }),
    });
    const fileId = await drafts.create();
    const slot = drafts.actors.system.lookup('draft', fileId) ?? '';
    const read = readUploadPlan(() => undefined);
    if (!read.ok) throw new Error('no plan');
    const request = { target: { slot, ownerId: OWNER_ID, fileId }, plan: read.plan, address: '127.0.0.1' };
    await rejectsWith(t, drafts.uploads.upload({ ...request, incoming: body }), 'Overloaded');
    t.equal(leases, 1, 'the stream had begun');
    t.equal(drafts.actors.system.lookup('draft', fileId), slot, 'the draft is open');
    t.equal((await drafts.stream(fileId, { body: 'hello' })).status, 503, 'still no room');
  },
);

t.test('receiver: a v2 body that does not fit is 503 with 1003, and its draft stays', async (t) => {
  const drafts = await startDrafts(t, { prebuffer: { memoryBytesMax: 0, fileBytesMax: 0 } });
  const fileId = await drafts.create();
  const { hostname, port, host } = new URL(drafts.http.url);
  const head = [
    `POST /auth/v2/file/stream_upload/${fileId} HTTP/1.1`,
    `Host: ${host}`,
    ...Object.entries(PERSON_HEADERS).map(([name, value]) => `${name}: ${value}`),
    'Content-Length: 5',
  ];
  const client = connect(Number(port), hostname);
  // In one write, so that the body arrives with its head.
  client.write(`${head.join('\r\n')}\r\n\r\nhello`);
  const [answer] = (await once(client, 'data')) as [Buffer];
  client.destroy();
  t.match(answer.toString(), /^HTTP\/1\.1 503 [\s\S]*Retry-After: 1\r\n/i);
  t.match(drafts.receiver.counters().prebuffered, { memoryBytes: 0, fileBytes: 0 });
  t.not(drafts.actors.system.lookup('draft', fileId), undefined, 'the draft is open');
  const kept = await drafts.stream(fileId, { method: 'HEAD' });
  t.equal(kept.headers.get('upload-offset'), '0', 'nothing is kept');
  t.equal(drafts.file(fileId), undefined);
});
