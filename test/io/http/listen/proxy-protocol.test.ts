/** PROXY protocol (version 2): which peers may send it, and that no client can add a header to its proxy's. */
import net from 'node:net';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { NO_LIMITS } from '../../../../kit/launch.ts';
import { object, text } from '../../../../src/domain/schema.ts';
import { StreamReply } from '../../../../src/io/http/exchange/stream.ts';
import type { PipelineOptions } from '../../../../src/io/http/pipeline.ts';
import { type AnyRoute, defineRoute, Reply } from '../../../../src/io/http/table/route.ts';
import {
  connectRaw,
  type HttpFixture,
  type HttpFixtureOptions,
  requestText,
  route,
  sendRaw,
  startHttp,
} from '../../../support/http.ts';

const plain = { group: 'test', limits: [], errors: [], summary: 'test', auth: 'none' } as const;
const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const FROM_PROXY: Partial<PipelineOptions> = { trustedProxies: ['127.0.0.1'], proxyProtocol: true };

/** Sends its text in one piece. */
const sourceOf = (body: string) => ({
  start(out: { send(bytes: string): boolean; end(): void }) {
    out.send(body);
    out.end();
  },
  drained: () => undefined,
  lost: () => undefined,
});

function start(
  t: Test,
  pipeline: Partial<PipelineOptions> = {},
  settings: HttpFixtureOptions['settings'] = NO_LIMITS,
): HttpFixture {
  const get = (path: string, handle: () => unknown): AnyRoute =>
    defineRoute({ ...plain, method: 'GET', path, handle });
  const routes: AnyRoute[] = [
    get('/open', () => 'open'),
    get('/later', () => Promise.resolve('later')),
    get('/empty', () => Reply.empty(204)),
    get('/known', () => new StreamReply(200, sourceOf('12345'), { lengthBytes: 5 })),
    get('/chunked', () => new StreamReply(200, sourceOf('12345'))),
    route('POST /named', { body: object({ name: text() }) }, () => 1),
  ];
  return closeAfter(t, startHttp({ routes, pipeline, settings }));
}

/** Command PROXY, TCP over IPv4, from `address` to 127.0.0.1:8192. */
function headerOf(address: string): Buffer {
  const bytes = Buffer.from(address.split('.').map(Number));
  return Buffer.concat([
    SIGNATURE,
    Buffer.from('2111000c', 'hex'),
    bytes,
    Buffer.from('7f00000110002000', 'hex'),
  ]);
}

/** The same over IPv6, from 2001:db8::9. */
const V6 = Buffer.concat([
  SIGNATURE,
  Buffer.from(`21210024${'20010db8'.padEnd(31, '0')}9${'0'.repeat(40)}`, 'hex'),
]);
/** Command LOCAL: the proxy's own health check, without addresses. */
const LOCAL = Buffer.concat([SIGNATURE, Buffer.from('20000000', 'hex')]);

const withHeader = (header: Uint8Array, text: string) => Buffer.concat([header, Buffer.from(text)]);

/** After two answers on new connections, earlier bytes of other connections have been read. */
async function settle({ port }: HttpFixture): Promise<void> {
  for (let twice = 0; twice < 2; twice += 1)
    await sendRaw(port, withHeader(LOCAL, requestText('GET', '/open?settle')));
}

const seen = ({ finished }: HttpFixture) =>
  finished.map(({ path, clientAddress: address }) => `${path} ${address}`);

// covers R97
t.test('PROXY protocol: a header is read with Listen.proxyProtocol and from a trusted peer', async (t) => {
  const fixture = start(t, FROM_PROXY);
  for (const header of [headerOf('203.0.113.5'), V6, LOCAL, Buffer.alloc(0)])
    t.equal((await sendRaw(fixture.port, withHeader(header, requestText('GET', '/open')))).status, 200);
  t.same(
    fixture.finished.map(({ clientAddress: address }) => address),
    ['203.0.113.5', '2001:db8::9', '127.0.0.1', '127.0.0.1'],
  );
  t.equal(fixture.pipeline.counters().proxyHeadersRefusedTotal, 0);
});

// covers R97
t.test('PROXY protocol: a client that the proxy names is charged by address only', async (t) => {
  const fixture = start(t, FROM_PROXY, {});
  const ask = async (address: string) => {
    const text = withHeader(headerOf(address), requestText('GET', '/open'));
    const { status, headers } = await sendRaw(fixture.port, text);
    return `${status} ${headers['x-ratelimit']}`;
  };
  const remaining = Array.from({ length: 60 }, (_, index) => 59 - index);
  const answers: string[] = [];
  for (const _ of remaining) answers.push(await ask('203.0.113.5'));
  t.same(
    answers,
    remaining.map((requests) => `200 s=i;l=60;r=${requests};t=5`),
  );
  t.equal(await ask('203.0.113.5'), '429 s=i;l=60;r=0;t=5');
  t.equal(await ask('203.0.113.6'), '200 s=i;l=60;r=59;t=5');
});

// covers S125
t.test('PROXY protocol: an unexpected header closes the connection, and nothing runs', async (t) => {
  const cases: Record<string, Partial<PipelineOptions>> = {
    'off, no trusted proxy': {},
    'off, a trusted peer': { trustedProxies: ['127.0.0.1'] },
    'on, a peer that is not trusted': { trustedProxies: ['10.0.0.0/8'], proxyProtocol: true },
  };
  for (const [name, pipeline] of Object.entries(cases)) {
    const fixture = start(t, pipeline);
    for (const header of [headerOf('203.0.113.5'), V6]) {
      const connection = connectRaw(fixture.port);
      connection.send(withHeader(header, requestText('GET', '/open')));
      t.equal(await connection.ended(), '', `${name}: no answer`);
    }
    const kept = connectRaw(fixture.port);
    t.equal(
      (await kept.ask(requestText('GET', '/open'))).status,
      200,
      `${name}: a request without one is served`,
    );
    kept.send(withHeader(headerOf('203.0.113.5'), requestText('GET', '/later')));
    t.equal(await kept.ended(), '', `${name}: also later on a connection`);
    t.equal(fixture.pipeline.counters().proxyHeadersRefusedTotal, 3, name);
    t.same(
      fixture.finished.map(({ status, clientAddress: address }) => [status, address]),
      [0, 0, 200, 0].map((status) => [status, '127.0.0.1']),
      `${name}: the log names the peer`,
    );
    t.equal(
      (await sendRaw(fixture.port, withHeader(LOCAL, requestText('GET', '/open')))).status,
      200,
      'LOCAL',
    );
    t.equal(fixture.finished.at(-1)?.clientAddress, '127.0.0.1', `${name}: LOCAL names no client`);
  }
});

// covers S126
t.test(
  'PROXY protocol: a client adds no header to the one of its proxy, whatever the answer is',
  async (t) => {
    const fixture = start(t, FROM_PROXY);
    const forged = withHeader(headerOf('198.51.100.1'), requestText('GET', '/forged'));
    const big = `{"name":"${'a'.repeat(500)}`;
    const cases: Record<string, string> = {
      '/open': requestText('GET', '/open'),
      '/later': requestText('GET', '/later'),
      '/nothing': requestText('GET', '/nothing'),
      '/head': requestText('HEAD', '/open'),
      '/empty': requestText('GET', '/empty'),
      '/known': requestText('GET', '/known'),
      '/chunked': requestText('GET', '/chunked'),
      '/named': requestText('POST', '/named', { 'Content-Type': 'application/json' }, '{"name":"x"}'),
      'refused early': `${requestText('POST', '/nothing', { 'Content-Length': '600' })}${big}`,
    };
    for (const [name, text] of Object.entries(cases)) {
      fixture.finished.length = 0;
      const socket = net.connect(fixture.port, '127.0.0.1');
      t.teardown(() => socket.destroy());
      socket.on('error', () => undefined);
      socket.write(withHeader(headerOf('203.0.113.5'), text));
      const [first] = await new Promise<Buffer[]>((resolve) =>
        socket.once('data', (bytes) => resolve([bytes])),
      );
      t.match(String(first), /^HTTP\/1\.1 [24]/, `${name}: answered`);
      t.match(String(first), /\r\nConnection: close\r\n/i, `${name}: and told that it is the last`);
      if (name === 'refused early') socket.write('a'.repeat(600 - big.length));
      socket.write(forged);
      await settle(fixture);
      t.notMatch(seen(fixture).join(), 'forged', `${name}: a later segment is not read`);
    }
    for (const [name, text] of Object.entries(cases)) {
      if (name === 'refused early') continue;
      fixture.finished.length = 0;
      const connection = connectRaw(fixture.port);
      connection.send(Buffer.concat([withHeader(headerOf('203.0.113.5'), text), forged]));
      const came = await connection.ended();
      t.ok(came.split('HTTP/1.1 ').length <= 2, `${name}: one segment, one answer at most`);
      t.notMatch(seen(fixture).join(), 'forged', `${name}: the rest of the segment is not read`);
    }
    t.same(fixture.bugs, []);
  },
);
