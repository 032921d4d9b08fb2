/** Loaded before the program by `npm run alerts`: faults that nothing outside of a process causes. */
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');
const crypto = require('node:crypto') as typeof import('node:crypto');
const { syncBuiltinESMExports } = require('node:module') as typeof import('node:module');

const fault = process.env['PLANTED'];
const SHIFT_MS = 2_000;
const STEP_MS = 10_000;

/** The clock of the program is ahead, and from SIGUSR2 on further than that of a member may be. */
if (fault === 'clock') {
  const now = Date.now.bind(Date);
  let shiftMs = SHIFT_MS;
  Date.now = () => now() + shiftMs;
  if (isMainThread)
    process.on('SIGUSR2', () => {
      shiftMs = STEP_MS;
    });
}
/** A thread ends when it has a signature to verify. */
if (fault === 'thread' && !isMainThread) {
  crypto.verify = (() => process.exit(1)) as unknown as typeof crypto.verify;
  syncBuiltinESMExports();
}
