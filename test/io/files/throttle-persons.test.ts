/** The bandwidth limiter: a quota is shared by callers first, then by the streams of each. In virtual time. */
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { StreamOwner } from '../../../src/io/files/stream-owner.ts';
import type { Direction, Throttle, ThrottledStream } from '../../../src/io/files/throttle.ts';
import { runs } from '../../support/depth.ts';
import { download, MiB, setUp } from '../../support/files/throttle.ts';

const MANY = 24;
const ADA = { userId: '7', address: '10.0.0.1' };
const BOB = { userId: '8', address: '10.0.0.1' };

interface Counted {
  readonly stream: ThrottledStream;
  bytes: number;
}

/** A stream that always wants more, and what it has moved. */
function endless(throttle: Throttle, owner: StreamOwner, direction: Direction = 'download'): Counted {
  const counted: Counted = { stream: throttle.open(direction, owner), bytes: 0 };
  if (direction === 'upload') {
    // Pieces as they come from a socket, of another size for each user.
    const pieceBytes = owner.userId === BOB.userId ? 1_400 : 16 * 1024;
    const send = (): void => {
      do counted.bytes += pieceBytes;
      while (counted.stream.charge(pieceBytes));
    };
    counted.stream.onClear = send;
    send();
  } else {
    const take = (bytes: number): void => {
      counted.bytes += bytes;
      counted.stream.ask(MiB, take);
    };
    counted.stream.ask(MiB, take);
  }
  return counted;
}

function sum(streams: readonly Counted[]): number {
  return streams.reduce((total, { bytes }) => total + bytes, 0);
}

function checkAlike(t: Test, found: number, wanted: number, what: string): void {
  t.ok(Math.abs(found - wanted) <= wanted * 0.05, `${what}: ${found}, ${wanted} is even`);
}

for (const direction of ['download', 'upload'] as const) {
  // covers R105 S136
  t.test(`throttle: ${direction}, ${MANY} streams of one user get no more than one of another`, async (t) => {
    const { time, throttle } = setUp({ FileDownloadBytesPerSecond: MiB, FileUploadBytesPerSecond: MiB });
    const many = Array.from({ length: MANY }, () => endless(throttle, ADA, direction));
    const one = endless(throttle, BOB, direction);
    t.equal(throttle.counters().persons, 2);
    // The first one asked for more, and was paid from the savings, before there were others.
    time.runUntil(20_000);
    for (const stream of [...many, one]) stream.bytes = 0;
    time.runUntil(80_000);
    checkAlike(t, sum(many), 30 * MiB, 'the many');
    checkAlike(t, one.bytes, 30 * MiB, 'the one');
    for (const { bytes } of many) checkAlike(t, bytes, sum(many) / MANY, 'a stream beside those of its user');
  });
}

// covers R105 S136
t.test(
  'throttle: without a session a network is one caller, an IPv6 network with all its addresses',
  async (t) => {
    const { time, throttle } = setUp({ FileDownloadBytesPerSecond: MiB });
    const addresses = Array.from({ length: MANY }, (_, index) => `2001:db8:0:1::${index + 1}`);
    const household = addresses.map((address) => endless(throttle, { userId: undefined, address }));
    const other = endless(throttle, { userId: undefined, address: '10.0.0.1' });
    const mapped = endless(throttle, { userId: undefined, address: '::ffff:10.0.0.1' });
    const user = endless(throttle, ADA);
    t.equal(throttle.counters().persons, 3, 'a user is not the network it comes from');
    time.runUntil(60_000);
    for (const person of [household, [other, mapped], [user]])
      checkAlike(t, sum(person), 20 * MiB, `${person.length} streams`);
  },
);

t.test('throttle: with a quota for each user or address an IPv6 network has one too', async (t) => {
  for (const FileBandwidthKey of ['{user}', '{address}']) {
    const { throttle } = setUp({ FileBandwidthKey });
    for (const address of ['2001:db8::1', '2001:db8::2'])
      throttle.open('download', { userId: undefined, address });
    t.equal(throttle.counters().quotas, 1, FileBandwidthKey);
  }
});

t.test(
  'throttle: the share of a user that leaves is free at once, for streams of other users only',
  async (t) => {
    const { time, throttle } = setUp({ FileDownloadBytesPerSecond: MiB });
    const many = Array.from({ length: MANY }, () => endless(throttle, ADA));
    const one = endless(throttle, BOB);
    time.runUntil(10_000);
    for (const { stream } of many) stream.leave();
    const before = one.bytes;
    time.runUntil(20_000);
    checkAlike(t, one.bytes - before, 10 * MiB, 'the one, alone');
    one.stream.leave();
    t.match(throttle.counters(), { streams: 0, waiting: 0, persons: 0 });
  },
);

t.test('throttle: the unused share of a slow user goes to the others', async (t) => {
  const { time, throttle } = setUp({ FileDownloadBytesPerSecond: MiB });
  const fast = endless(throttle, ADA);
  const slow = throttle.open('download', BOB);
  let slowBytes = 0;
  for (let second = 1; second <= 30; second += 1) {
    slow.ask(16 * 1024, (bytes) => {
      slowBytes += bytes;
    });
    time.runUntil(second * 1_000);
  }
  t.equal(slowBytes, 30 * 16 * 1024, 'the slow one waits for nothing');
  checkAlike(t, fast.bytes, 30 * MiB - slowBytes, 'the fast one');
});

// covers R105 S136
t.test('throttle: slow streams of a user take nothing from the share of its fast one', async (t) => {
  const { time, throttle } = setUp({ FileDownloadBytesPerSecond: MiB });
  const slow = Array.from({ length: MANY }, () => throttle.open('download', ADA));
  const fast = endless(throttle, ADA);
  const other = endless(throttle, BOB);
  let slowBytes = 0;
  for (let nowMs = 500; nowMs <= 60_000; nowMs += 500) {
    for (const stream of slow)
      stream.ask(4 * 1024, (bytes) => {
        slowBytes += bytes;
      });
    time.runUntil(nowMs);
  }
  checkAlike(t, fast.bytes + slowBytes, 30 * MiB, 'the user with slow streams');
  checkAlike(t, other.bytes, 30 * MiB, 'the other user');
});

// covers R104
t.test(
  'throttle: a change of the quota or of its key applies to running streams of several users',
  async (t) => {
    const { time, live, throttle } = setUp({ FileDownloadBytesPerSecond: MiB });
    const streams = [endless(throttle, ADA), endless(throttle, ADA), endless(throttle, BOB)];
    const measure = (seconds: number) => {
      const before = streams.map(({ bytes }) => bytes);
      time.runUntil(time.nowMs + seconds * 1_000);
      return streams.map(({ bytes }, index) => bytes - (before[index] ?? 0));
    };
    time.runUntil(1_000);
    live.set('FileDownloadBytesPerSecond', 4 * MiB);
    for (const [index, bytes] of measure(10).entries())
      checkAlike(t, bytes, index === 2 ? 20 * MiB : 10 * MiB, 'of 4 MiB/s');
    live.set('FileBandwidthKey', '{user}');
    measure(1);
    t.match(throttle.counters(), { streams: 3, quotas: 3, persons: 2 });
    for (const [index, bytes] of measure(10).entries())
      checkAlike(t, bytes, index === 2 ? 40 * MiB : 20 * MiB, 'of 4 MiB/s for each user');
  },
);

// covers S137
t.test('throttle: users without a stream are removed, whatever their number', async (t) => {
  const { time, throttle } = setUp();
  for (let user = 0; user < 20_000; user += 1) {
    const stream = throttle.open('upload', { userId: `${user}`, address: '' });
    stream.charge(1_000);
    stream.leave();
  }
  t.match(throttle.counters(), { quotas: 1, streams: 0, waiting: 0, persons: 0 });
  while (time.next());
  t.equal(time.waiting, 0);
});

t.test(
  'throttle: never more than the quota, and nothing of it lost, for any persons and demands',
  async (t) => {
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(
          fc.array(fc.record({ user: fc.nat(4), bytes: fc.integer({ min: 1, max: 4 * MiB }) }), {
            minLength: 1,
            maxLength: 12,
          }),
          (demands) => {
            const quota = MiB;
            const { time, throttle } = setUp({ FileDownloadBytesPerSecond: quota });
            let done = 0;
            for (const { user, bytes } of demands)
              download(throttle.open('download', { userId: `${user}`, address: '' }), bytes, () => {
                done += 1;
              });
            while (time.next());
            const totalMs = (demands.reduce((total, { bytes }) => total + bytes, 0) / quota) * 1_000;
            // One turn is saved up at first, one may pass before the last byte is paid, one while others end.
            return done === demands.length && time.nowMs >= totalMs - 100 && time.nowMs <= totalMs + 300;
          },
        ),
        runs(100),
      ),
    );
  },
);
