/** Regular work for the whole cluster: who does it, when a checkpoint is due, what a failure does. */
import t from 'tap';
import { ClusterUpkeep } from '../../../src/io/cluster/upkeep.ts';

const MEBIBYTE = 1024 * 1024;

interface World {
  inCharge: boolean;
  /** Bytes of the log by position. */
  readonly log: Map<number, number>;
  checkpoint: number | undefined;
  failure: Error | undefined;
}

function open() {
  const world: World = { inCharge: true, log: new Map(), checkpoint: undefined, failure: undefined };
  const steps: string[] = [];
  const timers: (() => void)[] = [];
  const measured: number[] = [];
  const upkeep = new ClusterUpkeep({
    partitions: {
      async maintain() {
        steps.push('partitions');
        if (world.failure !== undefined) throw world.failure;
        return { made: [], dropped: [] };
      },
    },
    checkpoints: {
      newest: async () =>
        world.checkpoint === undefined ? undefined : { position: world.checkpoint, parts: 1, ageMs: 0 },
      async logAfter(after) {
        measured.push(after);
        const rows = [...world.log].filter(([position]) => position > after);
        return {
          position: Math.max(after, ...rows.map(([position]) => position)),
          bytes: rows.reduce((sum, [, bytes]) => sum + bytes, 0),
        };
      },
    },
    async compare({ position }) {
      steps.push(`compares ${position}`);
    },
    async storeState() {
      steps.push('checkpoint');
      world.checkpoint = Math.max(...world.log.keys());
    },
    async trimAudit() {
      steps.push('audit');
    },
    isInCharge: () => world.inCharge,
    schedule: {
      timer(delayMs, run) {
        t.equal(delayMs, 60_000);
        timers.push(run);
        return () => timers.splice(timers.indexOf(run), 1);
      },
    },
    onError: (error) => steps.push(String(error)),
  });
  /** Lets a minute pass; what was done until the next one begins. */
  const round = async (): Promise<string[]> => {
    steps.length = 0;
    const run = timers.shift();
    run?.();
    while (timers.length === 0) await new Promise((resolve) => setImmediate(resolve));
    return [...steps];
  };
  return { world, round, upkeep, timers, measured };
}

t.test('upkeep: a checkpoint is stored when 64 MiB of the log lie after the newest one', async (t) => {
  const { world, round, measured } = open();
  world.log.set(1, 40 * MEBIBYTE);
  t.same(await round(), ['partitions', 'audit']);
  world.log.set(2, 24 * MEBIBYTE - 1);
  t.same(await round(), ['partitions', 'audit']);
  world.log.set(3, 1);
  t.same(await round(), ['partitions', 'checkpoint', 'audit']);
  t.same(measured, [0, 1, 2], 'each row is measured once');
  world.log.set(4, 63 * MEBIBYTE);
  t.same(await round(), ['compares 3', 'partitions', 'audit']);
  world.log.set(5, MEBIBYTE);
  t.same(await round(), ['compares 3', 'partitions', 'checkpoint', 'audit']);
});

t.test('upkeep: a node that is not in charge does nothing, and begins when it is', async (t) => {
  const { world, round } = open();
  world.inCharge = false;
  world.log.set(1, 70 * MEBIBYTE);
  t.same(await round(), []);
  world.inCharge = true;
  t.same(await round(), ['partitions', 'checkpoint', 'audit']);
});

t.test('upkeep: a round that fails is reported, and the next one runs', async (t) => {
  const { world, round } = open();
  world.failure = new Error('away');
  t.same(await round(), ['partitions', 'Error: away']);
  world.failure = undefined;
  t.same(await round(), ['partitions', 'audit']);
});

t.test('upkeep: every node compares the newest checkpoint, before one replaces it', async (t) => {
  const { world, round } = open();
  world.inCharge = false;
  world.checkpoint = 7;
  t.same(await round(), ['compares 7']);
  world.inCharge = true;
  world.log.set(8, 70 * MEBIBYTE);
  t.same(await round(), ['compares 7', 'partitions', 'checkpoint', 'audit']);
});

t.test('upkeep: after a stop no round begins', async (t) => {
  const { upkeep, timers } = open();
  await upkeep.stop();
  t.equal(timers.length, 0);
});
