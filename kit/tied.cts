/**
 * Loaded into a child with --require: it ends as soon as the other end of descriptor 3 is closed. So a test, or a
 * tool, that is killed leaves no program behind. A worker thread loads it too, and has nothing to do.
 */
const { Socket } = require('node:net') as typeof import('node:net');
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');

if (isMainThread) {
  const end = () => process.kill(process.pid, 'SIGKILL');
  const tie = new Socket({ fd: 3, readable: true });
  tie.on('end', end).on('error', end).resume();
  // A program that has nothing more to do ends by itself.
  tie.unref();
}
