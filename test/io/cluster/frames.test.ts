import fc from 'fast-check';
import t from 'tap';
import {
  BadFrame,
  FRAME_BYTES_MAX,
  FrameReader,
  packFrame,
  unpackFrame,
} from '../../../src/io/cluster/frames.ts';
import { runs } from '../../support/depth.ts';

const RUNS = 5_000;

function read(reader: FrameReader, chunks: readonly Buffer[]): unknown[] {
  const values: unknown[] = [];
  for (const chunk of chunks) reader.read(chunk, (frame) => values.push(unpackFrame(frame)));
  return values;
}

function lengthOf(sizeBytes: number): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt32LE(sizeBytes);
  return header;
}

t.test('frames: values come out as they went in, wherever the stream of bytes is cut', async (t) => {
  const value = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  );
  fc.assert(
    fc.property(fc.array(value, { maxLength: 12 }), fc.array(fc.nat(), { maxLength: 30 }), (values, cuts) => {
      const bytes = Buffer.concat(values.map((each) => packFrame(each)));
      const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
      const chunks = [0, ...places].map((start, index) => bytes.subarray(start, places[index]));
      t.same(read(new FrameReader(FRAME_BYTES_MAX), chunks), values);
    }),
    runs(RUNS),
  );
});

t.test('frames: a stream of single bytes gives the same frames', async (t) => {
  const values = ['a', { b: [1, 2, 3] }, Buffer.alloc(200_000, 7), null, 'end'];
  const bytes = Buffer.concat(values.map((value) => packFrame(value)));
  const chunks = Array.from(bytes, (_, index) => bytes.subarray(index, index + 1));
  t.same(read(new FrameReader(FRAME_BYTES_MAX), chunks), values);
});

t.test('frames: a length over the bound is refused by its four bytes alone', async (t) => {
  const reader = new FrameReader(1_024);
  t.throws(() => read(reader, [lengthOf(1_025)]), BadFrame);
  const split = new FrameReader(1_024);
  t.same(read(split, [lengthOf(1_025).subarray(0, 3)]), []);
  t.throws(() => read(split, [lengthOf(1_025).subarray(3), Buffer.from('x')]), BadFrame);
});

t.test('frames: an announced length takes no memory before its bytes arrive', async (t) => {
  const reader = new FrameReader(FRAME_BYTES_MAX);
  const before = process.memoryUsage().arrayBuffers;
  read(reader, [lengthOf(FRAME_BYTES_MAX), Buffer.from('a few bytes')]);
  t.ok(process.memoryUsage().arrayBuffers - before < FRAME_BYTES_MAX / 16);
});

t.test('frames: bytes that are no value are refused', async (t) => {
  for (const bytes of ['', 'dc', 'ffff', 'd9ff41'])
    t.throws(() => unpackFrame(Buffer.from(bytes, 'hex')), BadFrame, bytes);
});

t.test('frames: a value over the bound is refused by its sender', async (t) => {
  t.throws(() => packFrame(Buffer.alloc(FRAME_BYTES_MAX)), BadFrame);
  t.equal(packFrame(Buffer.alloc(FRAME_BYTES_MAX - 5)).length, FRAME_BYTES_MAX + 4, 'the largest is sent');
});

t.test('frames: a reader that was stopped hands out nothing more', async (t) => {
  const reader = new FrameReader(FRAME_BYTES_MAX);
  const values: unknown[] = [];
  reader.read(Buffer.concat([packFrame('a'), packFrame('b')]), (frame) => {
    values.push(unpackFrame(frame));
    reader.stop();
  });
  t.same(values, ['a']);
});

t.test('frames: what plain data holds survives the way', async (t) => {
  const value = {
    missing: undefined,
    nothing: null,
    position: 2 ** 52 + 1,
    negative: -3,
    fraction: 0.1,
    bytes: new Uint8Array([1, 2, 3]),
    at: new Date(1_767_225_600_000),
    list: [undefined, 'ä€😀', { deep: [true, false] }],
    wide: 2n ** 62n,
  };
  const [received] = read(new FrameReader(FRAME_BYTES_MAX), [packFrame(value)]) as (typeof value)[];
  t.strictSame({ ...received, bytes: Uint8Array.from(received?.bytes ?? []) }, value);
  t.ok(received !== undefined && 'missing' in received, 'undefined is not the same as missing');
});
