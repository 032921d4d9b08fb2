/**
 * Writes down which routes answered with which status and error. A suite loads it, and so does each program that a test
 * starts, with --require. Each fact of a process is one line of the file of its suite.
 */
const { appendFileSync, mkdirSync } = require('node:fs') as typeof import('node:fs');
const { join } = require('node:path') as typeof import('node:path');
const { subscribe } = require('node:diagnostics_channel') as typeof import('node:diagnostics_channel');
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');

interface FinishedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly error: string | undefined;
}

/** Facts of one process that are written at most; there are some hundred. */
const FACTS_MAX = 20_000;
const FOLDER = join(__dirname, '../../met');
const isSuite = process.env['GATEHOUSE_TEST_PRELOAD'] !== undefined;
const file = join(FOLDER, `${isSuite ? process.pid : process.ppid}.txt`);
const known = new Set<string>();

/** Whole lines are appended at once, so that processes do not mix theirs. A program may be killed right behind. */
function note(...fields: readonly string[]): void {
  const line = `${JSON.stringify(fields)}\n`;
  if (known.has(line) || known.size >= FACTS_MAX) return;
  known.add(line);
  appendFileSync(file, line);
}

if (isMainThread) {
  mkdirSync(FOLDER, { recursive: true });
  subscribe('gatehouse.request', (message) => {
    const { method, route, status, error } = message as FinishedRequest;
    if (route !== '') note('answer', `${method} ${route}`, String(status), error ?? '');
  });
}

module.exports = { FOLDER, note };
