import { connect, createServer } from 'node:tls';
import t, { type Test } from 'tap';
import { listenFor } from '../../../kit/http.ts';
import type { LogRow } from '../../../src/actors/runtime/replication/port.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { FRAME_BYTES_MAX } from '../../../src/io/cluster/frames.ts';
import { HANDSHAKE_MS } from '../../../src/io/cluster/handshaking.ts';
import { BEAT_MS } from '../../../src/io/cluster/link.ts';
import { isExposed } from '../../../src/io/cluster/transport.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { join, startNode } from '../../support/cluster/node.ts';
import { openRaw, startProxy } from '../../support/cluster/wire.ts';

const rowOf = (position: number, body: Uint8Array = Buffer.from(`row ${position}`)): LogRow => ({
  ...{ position, node: 1, incarnation: 1, nodeSeq: position, body },
});
/** Longer than any delay between attempts. */
const LONG_MS = 10_000;
/** After a link that was open. */
const FIRST_DELAY_MS = 100;

const threeNodes = async (t: Test) =>
  [
    await startNode(t, { node: 1 }),
    await startNode(t, { node: 2 }),
    await startNode(t, { node: 3 }),
  ] as const;

t.test('links: rows and positions reach every other node in their order', async (t) => {
  const [a, b, c] = await threeNodes(t);
  await join(a, b, c);
  const rows = Array.from({ length: 500 }, (_, index) => rowOf(2 ** 40 + index));
  for (const row of rows) a.links.push(row);
  for (const node of [b, c]) {
    await node.until(() => node.rows.length === rows.length);
    t.same(node.rows, rows);
  }
  a.links.applied(7);
  await b.until(() => b.positions.includes('1 7'));
  await c.until(() => c.positions.includes('1 7'));
  t.same(a.rows, [], 'a node gets no row of its own');
});

t.test('links: positions of one event-loop tick leave as the newest alone', async (t) => {
  const [a, b] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2 })];
  await join(a, b);
  for (let position = 1; position <= 1_000; position += 1) a.links.applied(position);
  await b.until(() => b.positions.includes('1 1000'));
  t.same(b.positions, ['1 1000']);
});

t.test('links: a large row arrives whole, one over the bound is dropped and counted', async (t) => {
  const [a, b] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2 })];
  await join(a, b);
  a.links.push(rowOf(1, Buffer.alloc(5 * 1024 * 1024, 3)));
  a.links.push(rowOf(2, Buffer.alloc(FRAME_BYTES_MAX)));
  a.links.push(rowOf(3));
  await b.until(() => b.rows.length === 2);
  t.same(
    b.rows.map(({ position, body }) => [position, body.length]),
    [
      [1, 5 * 1024 * 1024],
      [3, 5],
    ],
  );
  t.equal(a.links.counts.rowsDropped, 1);
});

t.test(
  'links: a call to all reaches every linked node, and one that refuses or is gone stops none',
  async (t) => {
    const heard: string[] = [];
    const hears = (name: string) => ({ say: (word: unknown) => void heard.push(`${name} ${word}`) });
    const refuses = () => {
      throw new GatewayError('Overloaded');
    };
    const [a, b, c, gone] = [
      await startNode(t, { node: 1 }),
      await startNode(t, { node: 2, verbs: { say: refuses } }),
      await startNode(t, { node: 3, verbs: hears('c') }),
      await startNode(t, { node: 4, verbs: hears('gone') }),
    ];
    await join(a, b, c);
    await gone.links.close();
    a.links.follow(new Map([b, c, gone].map(({ node, address }) => [node, address])));
    await a.links.callAll('say', 'hello');
    t.same(heard, ['c hello']);
    t.equal(a.links.counts.calls.answered, 2);
  },
);

t.test('links: a lost one is dialed again, and the position is sent again', async (t) => {
  const [a, b] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2 })];
  const proxy = await startProxy(t, b.address);
  a.links.follow(new Map([[2, proxy.address]]));
  a.links.applied(5);
  await b.until(() => b.positions.includes('1 5'));
  const lost = a.next('closed 2 out closed');
  proxy.cut();
  await lost;
  t.same(a.links.linked.outgoing, []);
  const opened = a.next('opened 2 out');
  a.pass(FIRST_DELAY_MS);
  await opened;
  await b.until(() => b.positions.length === 2);
  t.same(b.positions, ['1 5', '1 5']);
});

t.test('links: attempts at a node that is not there come at growing intervals', async (t) => {
  const [a, gone] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2 })];
  await gone.links.close();
  a.links.follow(new Map([[2, gone.address]]));
  const intervals: number[] = [];
  for (let attempt = 0; attempt < 7; attempt += 1) {
    const failed = a.next('failed 2 unreachable');
    const startMs = a.clock.nowMs;
    if (attempt > 0) a.clock.fireNext(startMs + LONG_MS);
    await failed;
    intervals.push(a.clock.nowMs - startMs);
  }
  t.same(intervals, [0, 200, 400, 800, 1_600, 2_000, 2_000]);
});

t.test('links: a node that opens its link to this one is dialed at once', async (t) => {
  const a = await startNode(t, { node: 1 });
  const former = await startNode(t, { node: 2 });
  await former.links.close();
  const failed = a.next('failed 2 unreachable');
  a.links.follow(new Map([[2, former.address]]));
  await failed;
  const b = await startNode(t, { node: 2, port: former.address.port });
  const opened = a.next('opened 2 out');
  b.links.follow(new Map([[1, a.address]]));
  await opened;
  t.same(a.links.linked, { outgoing: [2], incoming: [2] }, 'no delay has passed at either node');
});

t.test('links: the wait for links ends with the last one in either direction', async (t) => {
  const [a, b, c] = await threeNodes(t);
  let isLinked = false;
  const linked = a.links.linkedWith([2, 3], LONG_MS).then(() => {
    isLinked = true;
  });
  await join(a, b);
  t.equal(isLinked, false);
  a.links.follow(new Map([b, c].map(({ node, address }) => [node, address])));
  await a.until(() => a.links.linked.outgoing.length === 2);
  t.equal(isLinked, false, 'the third node has no link to the first');
  t.equal(a.links.isFedBy(3), false);
  c.links.follow(new Map([[1, a.address]]));
  await linked;
  t.ok(a.links.isFedBy(2) && a.links.isFedBy(3));
});

t.test('links: the wait for links to a node that is not there ends with its time', async (t) => {
  const [a, gone] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2 })];
  await gone.links.close();
  a.links.follow(new Map([[2, gone.address]]));
  const linked = a.links.linkedWith([2], LONG_MS);
  a.pass(LONG_MS);
  await linked;
  t.same(a.links.linked.outgoing, []);
});

t.test('links: a silent peer is lost after three intervals, a living one is not', async (t) => {
  const [a, b] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2 })];
  const proxy = await startProxy(t, b.address);
  a.links.follow(new Map([[2, proxy.address]]));
  await b.until(() => b.links.linked.incoming.length === 1);
  await a.until(() => a.links.linked.outgoing.length === 1);
  for (let beat = 0; beat < 10; beat += 1) {
    b.links.applied(beat);
    a.links.applied(beat + 1);
    await b.until(() => b.positions.includes(`1 ${beat + 1}`));
    b.pass(BEAT_MS);
  }
  t.same(b.links.linked.incoming, [1], 'it receives rows and positions');
  proxy.stall();
  const closed = [a.next('closed 2 out silent'), b.next('closed 1 in silent')];
  a.pass(4 * BEAT_MS);
  b.pass(4 * BEAT_MS);
  await Promise.all(closed);
  t.same(b.links.linked.incoming, []);
});

t.test('links: nodes with another secret or another log have none, and both say why', async (t) => {
  const a = await startNode(t, { node: 1 });
  const foreign = await startNode(t, { node: 2, secrets: ['another'] });
  const restored = await startNode(t, { node: 3, logId: 'a restored log' });
  const seen = [
    foreign.next('refused secret'),
    restored.next('refused log'),
    a.next('failed 2 secret'),
    a.next('failed 3 log'),
  ];
  a.links.follow(
    new Map([
      [2, foreign.address],
      [3, restored.address],
    ]),
  );
  await Promise.all(seen);
  t.same(a.links.linked.outgoing, []);
});

t.test('links: a recorded handshake opens none', async (t) => {
  const [a, b] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2 })];
  const proxy = await startProxy(t, b.address);
  a.links.follow(new Map([[2, proxy.address]]));
  await b.next('opened 1 in');
  const raw = await openRaw(t, b.address);
  await raw.frame();
  const refused = b.next('refused secret');
  raw.socket.write(Buffer.concat(proxy.sent[0] ?? []));
  await refused;
  t.same(JSON.parse(String(await raw.frame())), { refused: 'secret' });
  await raw.closed;
  t.same(b.links.linked.incoming, [1], 'the link of the node lives on');
});

t.test('links: a connection that says nothing, or half a message, is closed after two seconds', async (t) => {
  const a = await startNode(t, { node: 1 });
  const silent = await openRaw(t, a.address);
  await silent.frame();
  const half = await openRaw(t, a.address);
  await half.frame();
  half.socket.write(Buffer.from([200, 0, 0, 0, 0x7b]));
  a.pass(HANDSHAKE_MS - 1);
  t.same(a.events, []);
  a.pass(1);
  await Promise.all([silent.closed, half.closed]);
  t.same(a.events, ['refused late', 'refused late']);
});

t.test('links: garbage and large frames before the handshake are refused at once', async (t) => {
  const a = await startNode(t, { node: 1 });
  const attempts: [Buffer, string][] = [
    [Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'refused frame'],
    [Buffer.from([1, 4, 0, 0]), 'refused frame'],
    [Buffer.from([2, 0, 0, 0, 0x7b, 0x7d]), 'refused format'],
    [Buffer.from([2, 0, 0, 0, 0xff, 0xff]), 'refused format'],
  ];
  for (const [bytes, event] of attempts) {
    const raw = await openRaw(t, a.address);
    await raw.frame();
    const refused = a.next(event);
    raw.socket.write(bytes);
    await Promise.all([refused, raw.closed]);
  }
  t.same(a.links.linked.incoming, []);
  t.same(a.links.counts.refused, { frame: 2, format: 2 }, 'each is counted');
});

t.test('links: one network may hold 32 handshakes, and each that ends makes room', async (t) => {
  const a = await startNode(t, { node: 1 });
  const raws = [];
  for (let count = 0; count < 32; count += 1) {
    const raw = await openRaw(t, a.address);
    await raw.frame();
    raws.push(raw);
  }
  const refused = a.next('refused full');
  const surplus = await openRaw(t, a.address);
  await Promise.all([refused, surplus.closed]);
  const ended = a.next('refused closed');
  raws[0]?.socket.destroy();
  await ended;
  const b = await startNode(t, { node: 2 });
  const opened = b.next('opened 1 out');
  b.links.follow(new Map([[1, a.address]]));
  await opened;
  t.same(a.links.linked.incoming, [2]);
});

t.test('links: a newer life of a node takes the place of an older one, never the reverse', async (t) => {
  const b = await startNode(t, { node: 2 });
  const [older, newer] = [
    await startNode(t, { node: 1, incarnation: 3 }),
    await startNode(t, { node: 1, incarnation: 4 }),
  ];
  older.links.follow(new Map([[2, b.address]]));
  await older.next('opened 2 out');
  const replaced = [older.next('closed 2 out closed'), b.next('closed 1 in replaced')];
  newer.links.follow(new Map([[2, b.address]]));
  await Promise.all(replaced);
  const refused = older.next('failed 2 incarnation');
  older.pass(FIRST_DELAY_MS);
  await refused;
  t.same(b.links.linked.incoming, [1]);
});

t.test('links: nodes that are no longer named lose theirs, others keep theirs', async (t) => {
  const [a, b, c] = await threeNodes(t);
  await join(a, b, c);
  const closed = b.next('closed 1 in closed');
  a.links.follow(new Map([[3, c.address]]));
  await closed;
  t.same(a.links.linked.outgoing, [3]);
  a.pass(LONG_MS);
  t.same(a.events.filter((event) => event === 'opened 2 out').length, 1, 'it is not dialed again');
});

t.test(
  'links: TLS is spoken where it is configured, with certificates of one authority or by the secret',
  async (t) => {
    const [mine, foreign] = [makeCertificate(), makeCertificate()];
    const own = { cert: mine.certificate, key: mine.key };
    const pinned = { tls: { ...own, ca: mine.certificate }, plain: false };
    const a = await startNode(t, { node: 1, transport: pinned });
    const b = await startNode(t, { node: 2, transport: pinned });
    await join(a, b);
    a.links.push(rowOf(1));
    await b.until(() => b.rows.length === 1);
    const other = { cert: foreign.certificate, key: foreign.key };
    const c = await startNode(t, { node: 3, transport: { tls: other, plain: false } });
    const d = await startNode(t, { node: 4, transport: { tls: own, plain: false } });
    await join(c, d);
    t.pass('without an authority the secret alone is proven, bound to the session');
    const failed = a.next('failed 3 unreachable');
    a.links.follow(new Map([[3, c.address]]));
    await failed;
    const plain = await startNode(t, { node: 5 });
    const late = plain.until(() => plain.events.some((event) => event.startsWith('failed 4')));
    plain.links.follow(new Map([[4, d.address]]));
    plain.pass(HANDSHAKE_MS);
    plain.pass(HANDSHAKE_MS);
    await late;
    t.same(plain.links.linked.outgoing, [], 'a node without TLS gets no link');
  },
);

t.test('links: a handshake that is relayed through another TLS session opens none', async (t) => {
  const [mine, foreign] = [makeCertificate(), makeCertificate()];
  const transport = { tls: { cert: mine.certificate, key: mine.key }, plain: false };
  const [a, b] = [await startNode(t, { node: 1, transport }), await startNode(t, { node: 2, transport })];
  const between = createServer({ cert: foreign.certificate, key: foreign.key }, (client) => {
    const upstream = connect({ ...b.address, rejectUnauthorized: false });
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.pipe(upstream).pipe(client);
    client.on('close', () => upstream.destroy());
  });
  const { port } = await listenFor(t, between);
  const seen = [b.next('refused secret'), a.next('failed 2 secret')];
  a.links.follow(new Map([[2, { host: '127.0.0.1', port }]]));
  await Promise.all(seen);
  t.same(b.links.linked.incoming, []);
});

t.test('links: plain text leaves the machine only by the word of the operator', async (t) => {
  const tls = { cert: '', key: '' };
  t.ok(isExposed({ plain: false }, '10.1.2.3'));
  t.ok(isExposed({ plain: false }, 'node-b'));
  t.ok(isExposed({ plain: false }, undefined));
  t.notOk(isExposed({ plain: true }, '10.1.2.3'));
  t.notOk(isExposed({ plain: false, tls }, '10.1.2.3'));
  for (const host of ['127.0.0.1', '::1', 'localhost', '::ffff:127.0.0.1'])
    t.notOk(isExposed({ plain: false }, host), host);
  const a = await startNode(t, { node: 1 });
  const failed = a.next('failed 2 plain');
  a.links.follow(new Map([[2, { host: '10.1.2.3', port: 1 }]]));
  await failed;
});
