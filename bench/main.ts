/**
 * `npm run bench -- <scenario | all> [options]`: runs the suite in a process group of its own. An interrupt of the
 * terminal reaches the suite alone, which cleans up; at the end the whole group is killed.
 */
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { signalled } from './measure/processes.ts';

const SUITE = fileURLToPath(new URL('./cli/suite.js', import.meta.url));
/** A terminal sends an interrupt to the whole group and npm sends it on: within this time it is the same one. */
const SAME_MS = 500;

const suite = spawn(process.execPath, [...process.execArgv, SUITE, ...process.argv.slice(2)], {
  detached: true,
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
});
let firstMs: number | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    firstMs ??= performance.now();
    if (performance.now() < firstMs + SAME_MS) suite.kill(signal);
    // A second interrupt ends all at once: no report, and folders stay.
    else endGroup();
  });
suite.once('exit', (code, signal) => {
  endGroup();
  process.exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
});

function endGroup(): void {
  if (suite.pid !== undefined) signalled(-suite.pid, 'SIGKILL');
}
