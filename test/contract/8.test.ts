/** The service as a client of the contract sees it: section 8. */
import t from 'tap';
import { CHECKS as FILES } from './chapters/8-files.ts';
import { CHECKS as LIMITS } from './chapters/8-limits.ts';
import { runChecks } from './run.ts';

// Two gateways: one with the default limits.
t.jobs = 2;
await Promise.all([
  t.test('contract 8.1', (test) => runChecks(test, LIMITS, { settings: {} })),
  t.test('contract 8.2 to 8.4', (test) => runChecks(test, FILES)),
]);
