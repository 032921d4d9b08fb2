/** A sandbox whose thread ends is started again on the same port, after waits that grow. */
import t, { type Test } from 'tap';
import { type RunningSandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/start.ts';
import { superviseSandbox } from '../../src/sandbox/supervisor.ts';
import { ManualClock } from '../support/actors/actors.ts';

const FULL = new Error('ENOSPC: no space left on device');

/** Sandboxes of `start`, each with a way to end it as a full disk would. */
async function supervised(t: Test, start: (options: SandboxOptions) => Promise<RunningSandbox>) {
  const clock = new ManualClock(0);
  const waits: number[] = [];
  const end: ((error: Error) => void)[] = [];
  let returns = 0;
  const sandbox = await superviseSandbox(
    { dataPath: t.testdir({}) },
    {
      start: async (options) => {
        const started = await start(options);
        const crashed = new Promise<Error>((resolve) => end.push(resolve));
        return { ...started, crashed };
      },
      elapsed: clock.read,
      timer: clock.timer,
      onEnd: (error, waitMs) => {
        t.equal(error, FULL);
        waits.push(waitMs);
      },
      onReturn: () => {
        returns += 1;
      },
    },
  );
  t.teardown(() => sandbox.close());
  return {
    sandbox,
    clock,
    waits,
    returned: () => returns,
    /** Ends the one that runs; resolves when the wait has begun. */
    async end() {
      end.at(-1)?.(FULL);
      await new Promise((resolve) => setImmediate(resolve));
    },
    /** Lets the wait pass. */
    async pass() {
      clock.fireNext(Number.POSITIVE_INFINITY);
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

/** One that serves nothing and never ends. */
function stub(): RunningSandbox {
  const crashed = new Promise<Error>(() => undefined);
  const nothing = { modules: {}, moduleKey: '', signedUp: () => undefined, close: async () => undefined };
  return { url: 'http://127.0.0.1:1', crashed, ...nothing };
}

// covers S158
t.test('supervisor: a sandbox that ended serves again at the same address, with what was kept', async (t) => {
  const started: RunningSandbox[] = [];
  const { sandbox, end, clock, returned } = await supervised(t, async (options) => {
    const each = await startSandbox(options);
    started.push(each);
    return each;
  });
  const balance = async () => {
    const url = `${sandbox.modules.wallet}/wallet/v1/transactions/list`;
    return (await (await fetch(url, { headers: { 'x-crm': '7' } })).json()) as object;
  };
  const before = await balance();
  await started[0]?.close();
  await end();
  await t.rejects(balance(), 'nothing serves meanwhile');
  sandbox.signedUp('8');
  clock.fireNext(1_000);
  while (returned() === 0) await new Promise((resolve) => setImmediate(resolve));
  t.same(await balance(), before);
});

// covers S158
t.test('supervisor: waits grow to a minute, and begin anew after one that stayed', async (t) => {
  let fails = false;
  const { end, pass, waits, clock } = await supervised(t, async () => {
    if (fails) throw FULL;
    return stub();
  });
  fails = true;
  await end();
  for (let at = 0; at < 7; at += 1) await pass();
  t.same(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000], 'also of starts that fail');
  fails = false;
  await pass();
  clock.nowMs += 59_999;
  await end();
  await pass();
  clock.nowMs += 60_000;
  await end();
  t.same(waits.slice(8), [60_000, 1_000]);
});

t.test('supervisor: once closed nothing is started again', async (t) => {
  let starts = 0;
  const { sandbox, end, pass, waits } = await supervised(t, async () => {
    starts += 1;
    return stub();
  });
  await end();
  await sandbox.close();
  await pass();
  t.equal(starts, 1);
  t.same(waits, [1_000]);
});
