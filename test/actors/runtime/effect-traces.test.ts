/**
 * Effects of the runtime, and their order, in histories that the simulations repeat exactly: answers, notifications,
 * slow calls and written rows. New digests, after a change that is meant: `node
 * build/test/actors/runtime/effect-traces.test.js print`.
 */
import { createHash } from 'node:crypto';
import t from 'tap';
import { simulateCluster } from '../../support/actors/cluster-simulation.ts';
import { simulate } from '../../support/actors/simulation.ts';
import { count, everySeed } from '../../support/depth.ts';

/** Histories in all, and in each digest: a quick run compares the first ones. */
const SEEDS = 1_000;
const BLOCK_SEEDS = 100;
const DIGITS = 16;

const isPrinting = process.argv[2] === 'print';

/** Longer than tap's 30 s: the machine may be busy. */
t.setTimeout(600_000);

// Refusals are expected here by the thousand; their stacks would be half of the work.
Error.stackTraceLimit = 0;

const DIGESTS: Record<string, readonly string[]> = {
  'one node': [
    '3de7417efb1f1ab4',
    'a279a4424b34a506',
    '9b73f71c9e477d20',
    'eaeeeed0ff9f0a37',
    'd6c3a560184cb613',
    '044e24a66da750ef',
    '91301c61ad7efbd4',
    '5fe09cad46ebd3fb',
    '2f92bd32118c61a6',
    '5247eed719f557ce',
  ],
  'three nodes': [
    'd4966ca9944e37da',
    '1c0e4bfcd303f6e3',
    '3215020d5303eae7',
    '943aad8c9aac5e12',
    '112c6854eb304b8e',
    '55df805d0d714510',
    '1caa896d3c59610b',
    'e808ff688b363251',
    '0026cb6699283bce',
    'a81d4bedbf516f3c',
  ],
};

for (const [name, history] of [
  ['one node', simulate],
  ['three nodes', simulateCluster],
] as const) {
  t.test(`effects: ${name} give the same ones in the same order`, async (t) => {
    const blocks: string[] = [];
    let hash = createHash('sha256');
    const trace = (line: string) => hash.update(`${line}\n`);
    for (const seed of everySeed(isPrinting ? SEEDS : count(SEEDS))) {
      t.equal(await history(seed, { trace }), undefined, `seed ${seed}`);
      if (seed % BLOCK_SEEDS !== 0) continue;
      blocks.push(hash.digest('hex').slice(0, DIGITS));
      hash = createHash('sha256');
    }
    if (isPrinting) t.comment(blocks.join(' '));
    else t.strictSame(blocks, DIGESTS[name]?.slice(0, blocks.length));
  });
}
