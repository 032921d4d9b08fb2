/** Compiled files whose source is gone. */
import { join } from 'node:path';
import t from 'tap';
import { staleFiles } from '../../tools/packaging/remove-stale.ts';

t.test('stale files: what has no source is named with its map, all else stays', async (t) => {
  const root = t.testdir({
    src: { 'kept.ts': '', 'main.cts': '', io: { 'kept.ts': '' } },
    test: { 'kept.test.ts': '' },
    build: {
      src: {
        'kept.js': '',
        'kept.js.map': '',
        'main.cjs': '',
        'gone.js': '',
        'gone.js.map': '',
        io: { 'kept.js': '', 'gone.cjs': '', 'facts.json': '' },
      },
      test: { 'kept.test.js': '', 'gone.test.js': '' },
      connector: { 'made.js': '' },
    },
  });
  const stale = ['src/gone.js', 'src/gone.js.map', 'src/io/gone.cjs', 'test/gone.test.js'];
  t.same(staleFiles(root).sort(), stale.map((path) => join(root, 'build', path)).sort());
});
