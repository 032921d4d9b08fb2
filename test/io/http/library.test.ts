/** The choice between the builds of uWebSockets.js. */
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import t, { type Test } from 'tap';
import { HttpLibraryUnusable, httpLibrary, loadNewest } from '../../../src/io/http/library.ts';

const BROKEN = "throw new Error('only some lines of Node\\n\\nError: needs GLIBC_2.38')";

/** `require` in a folder with these packages: version and main file. */
function packages(t: Test, given: Record<string, readonly [version: string, main: string]>): NodeJS.Require {
  const folder = t.testdir({
    node_modules: Object.fromEntries(
      Object.entries(given).map(([name, [version, main]]) => [
        name,
        { 'package.json': JSON.stringify({ name, version, main: './main.js' }), 'main.js': main },
      ]),
    ),
  });
  return createRequire(`${folder}/main.js`);
}

t.test('http library: a build is loaded once, with the version of its package', async (t) => {
  const { uws, version } = httpLibrary();
  t.type(uws.App, 'function');
  t.match(version, /^20\.\d+\.\d+$/);
  t.equal(httpLibrary().uws, uws);
});

t.test(
  'http library: the first package that loads is used, missing and failing ones are passed over',
  async (t) => {
    const sound = 'exports.App = () => module.id';
    const find = packages(t, { next: ['3.0.0', BROKEN], current: ['2.0.0', sound], old: ['1.0.0', sound] });
    t.equal(loadNewest(['missing', 'next', 'current', 'old'], find).version, '2.0.0');
  },
);

t.test('http library: a package without a binary for this Node is passed over', async (t) => {
  const sound = 'exports.App = () => module.id';
  const find = packages(t, { next: ['3.0.0', sound], old: ['1.0.0', sound] });
  const file = find.resolve('next').replace('main.js', 'package.json');
  const write = (platform: string) =>
    writeFileSync(
      file,
      JSON.stringify({
        version: '3.0.0',
        main: './main.js',
        optionalDependencies: { [`@x/${platform}`]: '3.0.0' },
      }),
    );
  write('linux-x64-1');
  t.equal(loadNewest(['next', 'old'], find).version, '1.0.0');
  write(`${process.platform}-${process.arch}-${process.versions.node.split('.')[0]}`);
  t.equal(loadNewest(['next', 'old'], find).version, '3.0.0');
});

t.test('http library: without a usable build the error names each package and its reason', async (t) => {
  const find = packages(t, { next: ['3.0.0', BROKEN] });
  try {
    loadNewest(['next', 'missing'], find);
    t.fail('no package is usable');
  } catch (error) {
    t.type(error, HttpLibraryUnusable);
    t.match(
      String(error),
      /glibc 2\.38.*next: Error: needs GLIBC_2\.38; missing: Cannot find module 'missing'$/,
    );
  }
});
