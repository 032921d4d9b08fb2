/** The bandwidth limiter in virtual time: no test here waits. */
import fc from 'fast-check';
import t from 'tap';
import type { Direction } from '../../../src/io/files/throttle.ts';
import { runs } from '../../support/depth.ts';
import { checkEnds, download, MiB, settle, setUp, upload } from '../../support/files/throttle.ts';

const CALLER = { userId: '7', address: '127.0.0.1' };

for (const streams of [1, 2, 8]) {
  t.test(`throttle: ${streams} downloads of 20 MiB end together, at the quota`, async (t) => {
    const { time, throttle } = setUp();
    const ends: number[] = [];
    for (let index = 0; index < streams; index++)
      download(throttle.open('download', CALLER), 20 * MiB, () => ends.push(time.nowMs));
    while (time.next());
    t.equal(ends.length, streams);
    checkEnds(t, ends, 20 * MiB, 5_242_880);
    t.match(throttle.counters(), { streams: 0, waiting: 0 });
  });

  t.test(
    `throttle: ${streams} uploads of 20 MiB end together, whatever the size of their pieces`,
    async (t) => {
      const { time, throttle } = setUp();
      const ends: number[] = [];
      for (let index = 0; index < streams; index++) {
        const pieceBytes = [1_400, 64 * 1024, 512 * 1024, 5 * MiB][index % 4] ?? MiB;
        void upload(
          throttle.open('upload', CALLER),
          20 * MiB,
          () => pieceBytes,
          () => ends.push(time.nowMs),
        );
      }
      while (time.next()) await settle();
      t.equal(ends.length, streams);
      checkEnds(t, ends, 20 * MiB, 2_097_152);
    },
  );
}

t.test('throttle: a busy event loop with late intervals loses nothing of the quota', async (t) => {
  let seed = 1;
  const lateMs = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % 150;
  };
  const { time, throttle } = setUp({}, lateMs);
  const ends: number[] = [];
  for (let index = 0; index < 4; index++)
    download(throttle.open('download', CALLER), 20 * MiB, () => ends.push(time.nowMs));
  while (time.next());
  checkEnds(t, ends, 20 * MiB, 5_242_880);
});

// covers R104
t.test('throttle: no second passes more than the quota and its savings, for any demand', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        fc.integer({ min: 1_000, max: 10 * MiB }),
        fc.array(fc.integer({ min: 1, max: 4 * MiB }), { minLength: 1, maxLength: 12 }),
        (quota, sizes) => {
          const { time, throttle } = setUp({ FileDownloadBytesPerSecond: quota });
          let passed = 0;
          let done = 0;
          // No stream has more than passes in ten seconds: those of a small quota end soon too.
          for (const size of sizes.map((each) => Math.min(each, 10 * quota))) {
            const stream = throttle.open('download', CALLER);
            const step = (left: number): void => {
              if (left === 0) {
                stream.leave();
                done += 1;
              } else
                stream.ask(left, (bytes) => {
                  passed += bytes;
                  step(left - bytes);
                });
            };
            step(size);
          }
          let within = true;
          while (time.next()) within &&= passed <= quota * (time.nowMs / 1_000 + 0.1) + sizes.length;
          return within && done === sizes.length;
        },
      ),
      runs(60),
    ),
  );
});

t.test('throttle: a new stream shares from its start; a stream that leaves frees its share', async (t) => {
  const { time, throttle } = setUp({ FileDownloadBytesPerSecond: MiB });
  const ends: number[] = [];
  download(throttle.open('download', CALLER), 10 * MiB, () => ends.push(time.nowMs));
  time.runUntil(4_000);
  const late = throttle.open('download', CALLER);
  let got = 0;
  const take = (bytes: number): void => {
    got += bytes;
    late.ask(MiB, take);
  };
  late.ask(MiB, take);
  time.runUntil(8_000);
  t.ok(Math.abs(got - 2 * MiB) < 0.15 * MiB, `half of four seconds: ${got}`);
  late.leave();
  late.leave();
  const before = got;
  while (time.next());
  t.equal(got, before, 'nothing is called after it left');
  t.ok(Math.abs((ends[0] ?? 0) - 12_000) < 600, `10 MiB and the other's 2 MiB: ${ends[0]}`);
});

t.test('throttle: an aborted waiter leaves at once, its promise resolves, the intervals end', async (t) => {
  const { time, throttle } = setUp();
  const stream = throttle.open('upload', CALLER);
  t.notOk(stream.charge(10 * MiB));
  t.ok(stream.owing);
  t.match(throttle.counters(), { streams: 1, waiting: 1 });
  const paid = stream.paid();
  stream.leave();
  await paid;
  t.match(throttle.counters(), { streams: 0, waiting: 0 });
  t.ok(stream.charge(1), 'later bytes are charged to no stream');
  while (time.next());
  t.equal(time.waiting, 0);
});

// covers R104 R106
t.test('throttle: a change of the quota applies to running streams, 0 releases all', async (t) => {
  const { time, live, throttle } = setUp({ FileDownloadBytesPerSecond: 1_000_000 });
  let end = 0;
  download(throttle.open('download', CALLER), 10_000_000, () => {
    end = time.nowMs;
  });
  time.runUntil(2_000);
  live.set('FileDownloadBytesPerSecond', 4_000_000);
  while (time.next());
  t.ok(Math.abs(end - 4_000) < 200, `2 s of 1 MB/s, 2 s of 4 MB/s: ${end}`);

  live.set('FileDownloadBytesPerSecond', 1_000);
  const from = time.nowMs;
  download(throttle.open('download', CALLER), 10_000_000, () => {
    end = time.nowMs;
  });
  time.runUntil(from + 1_000);
  live.set('FileDownloadBytesPerSecond', 0);
  time.next();
  t.ok(end - from <= 1_200, 'the next turn');
  const upload = throttle.open('upload', CALLER);
  live.set('FileUploadBytesPerSecond', 0);
  t.ok(upload.charge(100 * MiB));
  t.notOk(upload.owing);
});

// covers R105
t.test('throttle: directions have quotas of their own; those of v1 take nothing from v2', async (t) => {
  const { time, throttle } = setUp({
    FileUploadBytesPerSecond: MiB,
    FileDownloadBytesPerSecond: MiB,
    FileV1UploadBytesPerSecond: MiB,
    FileV1DownloadBytesPerSecond: MiB,
  });
  const ends: [Direction, number][] = [];
  for (const direction of ['download', 'upload', 'part', 'v1Download'] as const)
    download(throttle.open(direction, CALLER), 4 * MiB, () => ends.push([direction, time.nowMs]));
  while (time.next());
  for (const [direction, end] of ends) t.ok(Math.abs(end - 4_000) <= 200, `${direction}: ${end}`);
  t.equal(ends.length, 4);
});

// covers P7 R105
t.test('throttle: the quotas of v2 hold no stream of v1 (spec 8.2)', async (t) => {
  const { throttle } = setUp({ FileUploadBytesPerSecond: MiB, FileDownloadBytesPerSecond: MiB });
  for (const direction of ['part', 'v1Download'] as const)
    t.ok(throttle.open(direction, CALLER).charge(100 * MiB), direction);
});

// covers R104
t.test('throttle: the key decides which streams share', async (t) => {
  const owners = [
    { userId: '1', address: '10.0.0.1' },
    { userId: '2', address: '10.0.0.1' },
    { userId: undefined, address: '10.0.0.1' },
  ];
  for (const [key, quotas] of [
    ['shared', 1],
    ['{user}', 3],
    ['{address}', 1],
    ['a {user} b {address}', 3],
  ] as const) {
    const { time, throttle } = setUp({ FileBandwidthKey: key, FileDownloadBytesPerSecond: MiB });
    const ends: number[] = [];
    for (const owner of owners)
      download(throttle.open('download', owner), 4 * MiB, () => ends.push(time.nowMs));
    t.equal(throttle.counters().quotas, quotas, key);
    while (time.next());
    checkEnds(t, ends.slice(0, owners.length / quotas), 4 * MiB, MiB);
  }
});

t.test('throttle: one stream after the other does not exceed the quota', async (t) => {
  const { time, throttle } = setUp({ FileDownloadBytesPerSecond: MiB });
  let left = 400;
  const again = (): void => {
    left -= 1;
    if (left > 0) download(throttle.open('download', CALLER), 10_240, again);
  };
  again();
  while (time.next());
  t.ok(Math.abs(time.nowMs - (400 * 10_240 * 1_000) / MiB) <= 300, `${time.nowMs} ms`);
});

t.test('throttle: a slow quota sends its first byte soon', async (t) => {
  const { time, throttle } = setUp({ FileDownloadBytesPerSecond: 2_000 });
  const stream = throttle.open('download', CALLER);
  let firstMs: number | undefined;
  stream.ask(MiB, () => {
    firstMs = time.nowMs;
  });
  time.runUntil(1_100);
  t.type(firstMs, 'number');
});

t.test('throttle: unused quotas are removed, used ones are kept', async (t) => {
  const { time, throttle } = setUp({ FileBandwidthKey: '{user}' });
  const kept = throttle.open('download', CALLER);
  for (let user = 0; user < 10_000; user++)
    throttle.open('download', { userId: `u${user}`, address: '' }).leave();
  time.nowMs += 1_000;
  throttle.open('download', { userId: 'last', address: '' }).leave();
  t.ok(throttle.counters().quotas <= 3);
  t.equal(throttle.counters().streams, 1);
  kept.leave();
  throttle.close();
});
