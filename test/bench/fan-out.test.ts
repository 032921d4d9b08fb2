/** Readers of the fan-out: what each stream gets is counted, so that lost and doubled messages are no figure. */
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import t, { type Test } from 'tap';
import { FanoutReaders } from '../../bench/scenarios/fan-out/fanout.ts';
import { streamsName, streamsOf } from '../../bench/scenarios/streams-of-clusters.ts';
import { listenFor } from '../../kit/http.ts';

const ROUND = { durationMs: 1, batch: 1, sizeBytes: 200 };

interface Streams {
  readonly answers: ServerResponse[];
  readonly port: number;
}

async function streamsServer(t: Test): Promise<Streams> {
  const answers: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    response.write('retry: 1000\n\n');
    answers.push(response);
  });
  const { port } = await listenFor(t, server);
  return { answers, port };
}

type Send = (servers: readonly Streams[], message: string) => void;

/** Sends to all streams of all servers. */
const toAll: Send = (servers, message) => {
  for (const { answers } of servers) for (const answer of answers) answer.write(`data: ${message}\n\n`);
};

/** Two servers with three streams each; `send` may change between rounds. */
async function gathered(t: Test): Promise<{ readers: FanoutReaders; sends: (send: Send) => void }> {
  const servers = [await streamsServer(t), await streamsServer(t)];
  let send = toAll;
  const readers = new FanoutReaders({
    name: 'two servers',
    suffix: '',
    pids: [process.pid],
    plans: servers.map(({ port }) => ({ port, requests: ['GET / HTTP/1.1\r\nHost: a\r\n\r\n'], clients: 3 })),
    async publish(messages) {
      for (const message of messages) send(servers, message);
    },
  });
  t.teardown(() => readers.leave());
  await readers.gather();
  return {
    readers,
    sends: (next) => {
      send = next;
    },
  };
}

t.test(
  'fan-out: streams of two servers that get each message once are a round without a fault',
  async (t) => {
    const { readers } = await gathered(t);
    const { details } = await readers.round({ ...ROUND, batch: 4 });
    t.same(details['errors'], {});
    t.equal(details['answers'], Number(details['events']) * 6);
    t.ok(Number(details['events']) >= 4, 'one batch at least');
    t.equal(await readers.unasked(), 0);
  },
);

t.test('fan-out: a message that one stream gets twice and another never is a fault', async (t) => {
  const { readers, sends } = await gathered(t);
  sends((servers, message) => {
    const [, ...others] = servers[0]?.answers ?? [];
    for (const answer of [...others, ...others.slice(0, 1), ...(servers[1]?.answers ?? [])])
      answer.write(`data: ${message}\n\n`);
  });
  const { details } = await readers.round(ROUND);
  t.equal(details['answers'], Number(details['events']) * 6, 'the total says nothing');
  t.same(details['errors'], { uneven: 2 });
});

t.test('fan-out: messages that no round awaits are counted whenever they come', async (t) => {
  const { readers, sends } = await gathered(t);
  sends((servers, message) => toAll(servers, `${message}\n\ndata: ${message}`));
  const { details } = await readers.round(ROUND);
  const expected = Number(details['events']) * 6;
  let unasked = (details['errors'] as Record<string, number>)['unasked'] ?? 0;
  while (unasked < expected) unasked += await readers.unasked();
  t.equal(unasked, expected);
  sends(toAll);
  t.same((await readers.round(ROUND)).details['errors'], {}, 'the next round has all of its own');
});

t.test('fan-out: clusters of all sizes share the streams evenly, and their names say how many', async (t) => {
  t.equal(streamsOf(10_000, [1, 2, 4]), 10_000);
  t.equal(streamsOf(403, [1, 2, 4]), 400);
  t.equal(streamsOf(1, [1, 2, 4]), 4);
  t.equal(streamsName(4, 10_000), 'events to 4 × 2,500 streams');
  t.equal(streamsName(1, 400), 'events to 1 × 400 streams');
});
