#!/usr/bin/env node
/**
 * The entry. Checks the version of Node in syntax that Node 8 accepts, and sets process-wide sizes before the first ES
 * module is loaded: loading one uses libuv's pool, and uWebSockets.js reads its header limit when imported. `require`
 * reads the files of the program on this thread, which is faster than the pool (docs/optimizations.md).
 */
/** Exit code of a wrong configuration (`EX_CONFIG` of sysexits.h); the program's table of them is not loaded yet. */
const EXIT_CONFIGURATION = 78;

/** The range in package.json: caret ranges with "or" between them. */
const supported: string = require('../../package.json').engines.node;

/** Is `version`, such as 20.20.1, in a range such as ^20.20.0? */
function fits(version: string, range: string): boolean {
  const has = version.split('.').map(Number) as [number, number, number];
  const least = range.replace('^', '').split('.').map(Number) as [number, number, number];
  if (has[0] !== least[0]) return false;
  return has[1] > least[1] || (has[1] === least[1] && has[2] >= least[2]);
}

const version = process.version.slice(1);
if (supported.split(' || ').some((range) => fits(version, range))) {
  const { env } = process;
  if (env['UV_THREADPOOL_SIZE'] === undefined) env['UV_THREADPOOL_SIZE'] = '16';
  if (env['UWS_HTTP_MAX_HEADERS_SIZE'] === undefined) env['UWS_HTTP_MAX_HEADERS_SIZE'] = '16384';
  const { run } = require('./cli/run.js') as typeof import('./cli/run.ts');
  void run(process.argv.slice(2));
} else {
  const ranges = supported
    .split(' || ')
    .map((range) => `${range.slice(1).split('.')[0]} from ${range.slice(1)}`);
  process.stderr.write(`gatehouse: needs Node ${ranges.join(' or ')}; this is ${version}\n`);
  process.exitCode = EXIT_CONFIGURATION;
}
