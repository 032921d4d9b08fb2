/** One suite for every engine of the shared log: order, fences, members, lost answers. */
import type { Test } from 'tap';
import {
  type Entered,
  Expelled,
  LogLost,
  type LogRow,
  type LogWrite,
  NameTaken,
  type SharedLog,
} from '../../../src/actors/runtime/replication/port.ts';

/** An empty log. */
export interface LogFixture {
  /** The log as another process sees it. */
  connect(): Promise<SharedLog>;
  /** Lets so much time pass that a process that does not renew counts as gone. */
  passLease(): Promise<void>;
}

interface TestNode extends Entered {
  readonly log: SharedLog;
  readonly name: string;
}

const BODY = Buffer.from('body');

async function enter(fixture: LogFixture, name: string, previous?: number): Promise<TestNode> {
  const log = await fixture.connect();
  return { log, name, ...(await log.enter(name, previous)) };
}

async function enterAndJoin(fixture: LogFixture, name: string): Promise<TestNode> {
  const node = await enter(fixture, name);
  await node.log.join(write(node, 1));
  return node;
}

function write({ node, incarnation }: TestNode, nodeSeq: number, body: Uint8Array = BODY): LogWrite {
  return { node, incarnation, nodeSeq, body };
}

async function counterOf(target: TestNode, by: TestNode): Promise<number> {
  const { others } = await by.log.renew(by.node, by.incarnation, 0);
  return others.find(({ node }) => node === target.node)?.renewals ?? Number.NaN;
}

async function newest({ log }: TestNode): Promise<number> {
  return (await log.fetch(0, 1_000)).at(-1)?.position ?? 0;
}

const summary = ({ position, node, nodeSeq, body }: LogRow) => [
  position,
  node,
  nodeSeq,
  Buffer.from(body).toString(),
];

/** Runs the suite over logs that `open` makes, one for each test. */
export function testLogContract(t: Test, name: string, open: (t: Test) => Promise<LogFixture>): void {
  const test = (title: string, run: (t: Test, fixture: LogFixture) => Promise<void>) =>
    t.test(`log ${name}: ${title}`, async (t) => run(t, await open(t)));
  testRows(test);
  testNames(test);
  testMembers(test);
  testExpel(test);
  testResolve(test);
}

type Tester = (title: string, run: (t: Test, fixture: LogFixture) => Promise<void>) => void;

function testRows(test: Tester): void {
  test('rows of several nodes have positions from 1 without a gap, the same for every reader', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    const writes = Array.from({ length: 20 }, (_, index) => {
      const node = index % 2 === 0 ? a : b;
      return node.log.append(write(node, 2 + index, Buffer.from(`row ${index}`)));
    });
    const positions = await Promise.all(writes);
    t.same(
      [...positions].sort((left, right) => left - right),
      Array.from({ length: 20 }, (_, index) => 3 + index),
    );
    const rows = await b.log.fetch(2, 100);
    t.same(
      rows.map(({ position }) => position),
      Array.from({ length: 20 }, (_, index) => 3 + index),
    );
    for (const [index, position] of positions.entries()) {
      const row = rows.find((each) => each.position === position);
      t.equal(row === undefined ? '' : Buffer.from(row.body).toString(), `row ${index}`);
      t.equal(row?.nodeSeq, 2 + index);
    }
    t.same((await a.log.fetch(2, 100)).map(summary), rows.map(summary));
  });

  test('a fetch answers at most the limit, and nothing at the end', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    for (const seq of [2, 3, 4]) await a.log.append(write(a, seq));
    t.same(
      (await a.log.fetch(1, 2)).map(({ position }) => position),
      [2, 3],
    );
    t.same(await a.log.fetch(4, 10), []);
  });

  test('a reader gets every row in order, also large ones of which an answer holds few', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    const large = Buffer.alloc(1024 * 1024, 'large');
    for (const seq of [2, 3, 4, 5, 6]) await a.log.append(write(a, seq, large));
    const read: number[] = [];
    for (let after = 1; ; after = read.at(-1) ?? after) {
      const rows = await a.log.fetch(after, 100);
      if (rows.length === 0) break;
      read.push(...rows.map(({ position }) => position));
      t.ok(rows.every(({ body }) => body.length === large.length));
    }
    t.same(read, [2, 3, 4, 5, 6]);
  });

  test('bodies come back byte for byte, an empty one and one of a megabyte', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    const large = Uint8Array.from({ length: 1024 * 1024 }, (_, index) => index * 7);
    await a.log.append(write(a, 2, new Uint8Array()));
    await a.log.append(write(a, 3, large));
    const [empty, full] = await a.log.fetch(1, 10);
    t.equal(empty?.body.length, 0);
    t.ok(full !== undefined && Buffer.from(full.body).equals(large));
  });

  test('a reader that is ahead of the log learns that the log has lost rows', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    await t.rejects(a.log.fetch(2, 10), LogLost);
  });

  test('a reader that has applied another row at its position learns that the log has lost rows', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    for (const seq of [2, 3]) await a.log.append(write(a, seq));
    const { node, incarnation } = a;
    const applied = { node, incarnation, nodeSeq: 2 };
    t.equal((await a.log.fetch(2, 10, applied)).length, 1);
    for (const other of [{ node: 2 }, { incarnation: incarnation + 2 }, { nodeSeq: 7 }])
      await t.rejects(a.log.fetch(2, 10, { ...applied, ...other }), LogLost, JSON.stringify(other));
  });
}

function testNames(test: Tester): void {
  test('a name keeps its number and gets a higher incarnation each time, another name another number', async (t, fixture) => {
    const first = await enter(fixture, 'a');
    const other = await enter(fixture, 'b');
    const again = await enter(fixture, 'a');
    t.ok(first.node >= 1 && first.node <= 63);
    t.not(other.node, first.node);
    t.equal(again.node, first.node);
    t.ok(again.incarnation > first.incarnation);
    t.equal(again.logId, first.logId);
  });

  test('a name is taken while its process renews, and free after a lease without renewal', async (t, fixture) => {
    const first = await enterAndJoin(fixture, 'a');
    await first.log.renew(first.node, first.incarnation, 1);
    await t.rejects(enter(fixture, 'a'), NameTaken);
    await t.rejects(enter(fixture, 'a', first.incarnation - 1), NameTaken);
    t.equal(await first.log.append(write(first, 2)), 2, 'the process that has the name continues');
    await fixture.passLease();
    const second = await enter(fixture, 'a');
    t.equal(second.node, first.node);
    t.equal(second.position, 2);
    await t.rejects(first.log.append(write(first, 3)), Expelled);
    await t.rejects(first.log.renew(first.node, first.incarnation, 1), Expelled);
  });

  test('a name is free at once when its process has left, or enters again itself', async (t, fixture) => {
    const first = await enterAndJoin(fixture, 'a');
    const again = await enter(fixture, 'a', first.incarnation);
    t.ok(again.incarnation > first.incarnation);
    await again.log.join(write(again, 2));
    await again.log.leave(write(again, 3));
    const next = await enter(fixture, 'a');
    t.ok(next.incarnation > again.incarnation);
  });

  test('an incarnation that is not the newest writes nothing', async (t, fixture) => {
    const first = await enterAndJoin(fixture, 'a');
    const second = await enter(fixture, 'a', first.incarnation);
    await t.rejects(first.log.append(write(first, 2)), Expelled);
    await t.rejects(first.log.join(write(first, 3)), Expelled);
    await t.rejects(first.log.leave(write(first, 4)), Expelled);
    t.equal(await newest(second), 1);
  });
}

function testMembers(test: Tester): void {
  test('a node renews only while it is joined', async (t, fixture) => {
    const a = await enter(fixture, 'a');
    await t.rejects(a.log.renew(a.node, a.incarnation, 0), Expelled);
    await a.log.join(write(a, 1));
    t.match(await a.log.renew(a.node, a.incarnation, 1), { others: [], position: 1 });
    await a.log.leave(write(a, 2));
    await t.rejects(a.log.renew(a.node, a.incarnation, 2), Expelled);
  });

  test('a look reads what a renewal reads, renews nothing, and takes no membership', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enter(fixture, 'b')];
    const before = await b.log.look(b.node);
    t.match(before, { others: [{ node: a.node, applied: 0 }], position: 1 });
    t.equal(before.others[0]?.clockOffsetMs, undefined, 'it has not renewed');
    for (let renewal = 0; renewal < 2; renewal += 1) await a.log.renew(a.node, a.incarnation, 1);
    const { others, clock } = await b.log.look(b.node);
    const [seen] = others;
    t.equal(seen?.renewals, (before.others[0]?.renewals ?? 0) + 2);
    // Processes of one machine have one clock.
    t.ok(Math.abs((seen?.clockOffsetMs ?? 99_999) - clock.offsetMs) < 500 + clock.errorMs);
    t.equal((await a.log.renew(a.node, a.incarnation, 1)).others.length, 0);
  });

  test('a renewal reads the newest digest of other nodes, until they enter again', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    const read = async () => (await a.log.renew(a.node, a.incarnation, 0)).others[0]?.sample;
    t.equal(await read(), undefined);
    for (const position of [100, 200]) {
      const sample = { position, digest: Buffer.alloc(32, position) };
      await b.log.renew(b.node, b.incarnation, 2, sample);
      const { position: seen, digest = Buffer.alloc(0) } = (await read()) ?? {};
      t.same([seen, Buffer.from(digest)], [position, sample.digest]);
    }
    const again = await enter(fixture, 'b', b.incarnation);
    await again.log.join(write(again, 1));
    t.equal(await read(), undefined);
  });

  test('a renewal reads the counters and positions of the other joined nodes', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    await enter(fixture, 'c');
    const before = await counterOf(b, a);
    await b.log.renew(b.node, b.incarnation, 2);
    const { others, position } = await a.log.renew(a.node, a.incarnation, 0);
    t.match(others, [{ node: b.node, renewals: before + 1, applied: 2 }]);
    t.equal(others.length, 1);
    t.equal(position, 2);
    await b.log.leave(write(b, 2));
    t.same((await a.log.renew(a.node, a.incarnation, 0)).others, []);
  });

  test('a join counts as a renewal', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    const before = await counterOf(b, a);
    await b.log.join(write(b, 2));
    t.ok((await counterOf(b, a)) > before);
    t.equal(await a.log.expel(write(a, 2), b.node, before), undefined);
  });
}

function testExpel(test: Tester): void {
  test('an expelled node writes, renews and leaves no more', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    t.equal(await a.log.expel(write(a, 2), b.node, await counterOf(b, a)), 3);
    t.same((await a.log.fetch(2, 10)).map(summary), [[3, a.node, 2, 'body']]);
    await t.rejects(b.log.append(write(b, 2)), Expelled);
    await t.rejects(b.log.renew(b.node, b.incarnation, 0), Expelled);
    await t.rejects(b.log.leave(write(b, 3)), Expelled);
    await t.rejects(b.log.join(write(b, 4)), Expelled);
    t.same((await a.log.renew(a.node, a.incarnation, 0)).others, []);
    t.equal(await newest(a), 3);
  });

  test('an expelled node enters again under its number, at once', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    await a.log.expel(write(a, 2), b.node, await counterOf(b, a));
    const again = await enter(fixture, 'b', b.incarnation);
    t.equal(again.node, b.node);
    t.equal(await again.log.join(write(again, 2)), 4);
    t.equal(await again.log.append(write(again, 3)), 5);
  });

  test('a node that has renewed since is not expelled, nothing is written', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    const seen = await counterOf(b, a);
    await b.log.renew(b.node, b.incarnation, 0);
    t.equal(await a.log.expel(write(a, 2), b.node, seen), undefined);
    t.equal(await b.log.append(write(b, 2)), 3);
  });

  test('a node is expelled once, and one that has left is not', async (t, fixture) => {
    const [a, b, c] = [
      await enterAndJoin(fixture, 'a'),
      await enterAndJoin(fixture, 'b'),
      await enterAndJoin(fixture, 'c'),
    ];
    const counters = [await counterOf(b, a), await counterOf(c, a)] as const;
    t.equal(await a.log.expel(write(a, 2), b.node, counters[0]), 4);
    t.equal(await c.log.expel(write(c, 2), b.node, counters[0]), undefined);
    await c.log.leave(write(c, 3));
    t.equal(await a.log.expel(write(a, 3), c.node, counters[1]), undefined);
    t.equal(await newest(a), 5);
  });

  test('an expelled node expels no other', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    const [ofA, ofB] = [await counterOf(a, b), await counterOf(b, a)];
    await a.log.expel(write(a, 2), b.node, ofB);
    const seen = ofA + 1;
    await t.rejects(b.log.expel(write(b, 2), a.node, seen), Expelled);
    t.equal(await a.log.append(write(a, 3)), 4, 'the target is in');
  });
}

function testResolve(test: Tester): void {
  test('resolve finds a row that was written, however often it is asked', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    const position = await a.log.append(write(a, 2));
    t.equal(await a.log.resolve(write(a, 2)), position);
    t.equal(await a.log.resolve(write(a, 2)), position);
  });

  test('after resolve the old incarnation writes nothing, and the next one does', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    t.equal(await a.log.resolve(write(a, 2)), undefined);
    await t.rejects(a.log.append(write(a, 2)), Expelled);
    const next = { ...a, incarnation: a.incarnation + 1 };
    t.equal(await a.log.join(write(next, 3)), 2);
    t.equal(await a.log.append(write(next, 2)), 3);
    t.equal(await newest(a), 3);
  });

  test('a node stays joined through resolve and renews with the next incarnation', async (t, fixture) => {
    const a = await enterAndJoin(fixture, 'a');
    await a.log.resolve(write(a, 2));
    t.equal((await a.log.renew(a.node, a.incarnation + 1, 1)).position, 1);
  });

  test('an expelled node resolves what it had written', async (t, fixture) => {
    const [a, b] = [await enterAndJoin(fixture, 'a'), await enterAndJoin(fixture, 'b')];
    const position = await b.log.append(write(b, 2));
    await a.log.expel(write(a, 2), b.node, await counterOf(b, a));
    t.equal(await b.log.resolve(write(b, 2)), position);
    t.equal(await b.log.resolve(write(b, 9)), undefined);
  });

  test('a process whose name another one has taken cannot resolve', async (t, fixture) => {
    const first = await enterAndJoin(fixture, 'a');
    await fixture.passLease();
    const second = await enter(fixture, 'a');
    await t.rejects(first.log.resolve(write(first, 2)), Expelled);
    t.equal(await second.log.join(write(second, 1)), 2);
  });
}
