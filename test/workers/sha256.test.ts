/** SHA-256 of a range of a file, as a worker reads it. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { sha256Range } from '../../src/workers/sha256.ts';

t.test('sha256: of any range of a file, undefined where the file is shorter', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 700_000 }, (_, index) => index % 251));
  const path = `${t.testdir()}/file`;
  writeFileSync(path, bytes);
  const fd = openSync(path, 'r');
  t.teardown(() => closeSync(fd));
  for (const [position, length] of [
    [0, 700_000],
    [0, 0],
    [1, 262_144],
    [600_000, 100_000],
  ] as const) {
    const expected = createHash('sha256')
      .update(bytes.subarray(position, position + length))
      .digest('base64url');
    t.equal(sha256Range({ fd, position, length }), expected, `${position} ${length}`);
  }
  t.equal(sha256Range({ fd, position: 600_000, length: 100_001 }), undefined);
});
