/** The log in memory: the contract of logs, and the faults that the simulation drives. */
import t from 'tap';
import { type MemoryCall, MemoryLog } from '../../../../kit/journal/memory-log.ts';
import {
  Expelled,
  LogLost,
  OutcomeUnknown,
  type SharedLog,
} from '../../../../src/actors/runtime/replication/port.ts';
import { ManualClock } from '../../../support/actors/actors.ts';
import { testLogContract } from '../../../support/actors/log-contract.ts';

const LEASE_MS = 1_000;

testLogContract(t, 'memory', async () => {
  const clock = new ManualClock();
  const log = new MemoryLog({ immediate: queueMicrotask, clock: clock.read, leaseMs: LEASE_MS });
  return {
    connect: async () => log.connect(),
    passLease: async () => {
      clock.nowMs += LEASE_MS;
    },
  };
});

const BODY = Buffer.from('body');

/** A log whose calls wait, with a node that has joined by a row at position 1. */
async function driven() {
  const log = new MemoryLog({ clock: () => 0, leaseMs: LEASE_MS });
  const client = log.connect();
  const answered = async <T>(answer: Promise<T>): Promise<T> => {
    const call = oldest(log);
    log.step(call);
    log.step(call);
    return answer;
  };
  const { node, incarnation } = await answered(client.enter('a'));
  const write = (nodeSeq: number) => ({ node, incarnation, nodeSeq, body: BODY });
  await answered(client.join(write(1)));
  return { log, client, answered, write };
}

function oldest(log: MemoryLog): MemoryCall {
  const [call] = log.calls;
  if (call === undefined) throw new Error('no call waits');
  return call;
}

const isPending = async (promise: Promise<unknown>) => {
  const pending = Symbol('pending');
  return (await Promise.race([promise, Promise.resolve(pending)])) === pending;
};

t.test('memory log: a call waits until its question, then its answer is let through', async (t) => {
  const { log, client, write } = await driven();
  const position = client.append(write(2));
  const call = oldest(log);
  t.match(call, { client: client.client, method: 'append', executed: false });
  t.equal(log.position, 1);
  log.step(call);
  t.equal(call.executed, true);
  t.equal(log.position, 2);
  t.ok(await isPending(position));
  log.step(call);
  t.equal(await position, 2);
  t.same(log.calls, []);
});

t.test('memory log: a lost answer leaves the row and an unknown outcome', async (t) => {
  const { log, client, write } = await driven();
  const position = client.append(write(2));
  log.step(oldest(log));
  log.lose(oldest(log));
  await t.rejects(position, OutcomeUnknown);
  t.equal(log.position, 2);
  t.same(log.calls, []);
});

t.test(
  'memory log: a late question arrives after its client has given up, unless it is dropped',
  async (t) => {
    const { log, client, write } = await driven();
    const late = client.append(write(2));
    log.lose(oldest(log));
    await t.rejects(late, OutcomeUnknown);
    t.equal(log.position, 1);
    log.step(oldest(log));
    t.equal(log.position, 2);
    t.same(log.calls, []);
    const dropped = client.append(write(3));
    log.drop(oldest(log));
    await t.rejects(dropped, OutcomeUnknown);
    t.equal(log.position, 2);
    t.same(log.calls, []);
  },
);

t.test('memory log: a late question of before resolve is refused', async (t) => {
  const { log, client, answered, write } = await driven();
  const late = client.append(write(2));
  const call = oldest(log);
  log.lose(call);
  await t.rejects(late, OutcomeUnknown);
  const resolved = client.resolve(write(2));
  const question = log.calls[1] ?? call;
  log.step(question);
  log.step(question);
  t.equal(await resolved, undefined);
  log.step(call);
  t.equal(log.position, 1);
  await t.rejects(answered(client.append(write(3))), Expelled);
});

t.test(
  'memory log: the calls of a process that has ended get no answer, its questions may arrive',
  async (t) => {
    const { log, client, write } = await driven();
    const executed = client.append(write(2));
    log.step(oldest(log));
    const asked = client.append(write(3));
    log.disconnect(client.client);
    t.equal(log.calls.length, 1);
    log.step(oldest(log));
    t.equal(log.position, 3);
    t.ok(await isPending(executed));
    t.ok(await isPending(asked));
  },
);

t.test('memory log: rows that were trimmed are lost to a reader that is further behind', async (t) => {
  const { log, client, answered, write } = await driven();
  await answered(client.append(write(2)));
  await answered(client.append(write(3)));
  log.trim(2);
  t.equal((await answered((client as SharedLog).fetch(2, 10))).length, 1);
  await t.rejects(answered(client.fetch(1, 10)), LogLost);
  t.equal(await answered(client.append(write(4))), 4);
});
