/** Resident memory and the limit of descriptors. */
import t from 'tap';
import { descriptorLimit, residentMemory } from '../../../src/io/observability/machine.ts';

t.test('resident memory: sampled at most once a second; a failed sample keeps the value', async (t) => {
  let nowMs = 0;
  let looks = 0;
  const read = () => {
    looks += 1;
    if (looks === 3) throw new Error('EMFILE');
    return looks;
  };
  const bytes = residentMemory(() => nowMs, read);
  t.equal(bytes(), 1);
  nowMs = 999;
  t.equal(bytes(), 1);
  nowMs = 1_000;
  t.equal(bytes(), 2);
  nowMs = 2_000;
  t.equal(bytes(), 2, 'the third look failed');
  t.equal(bytes(), 2);
  t.equal(looks, 3, 'and is not repeated within the second');
  nowMs = 3_000;
  t.equal(bytes(), 4);
});

t.test('descriptor limit: that of the process', { skip: process.platform !== 'linux' }, async (t) => {
  t.ok((descriptorLimit() ?? 0) > 100);
});
