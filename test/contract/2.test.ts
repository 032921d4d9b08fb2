/** The service as a client of the contract sees it: section 2. */
import t from 'tap';
import { CHECKS as EVENTS, FIDO2 } from './chapters/2-events.ts';
import { CHECKS as RECORDS } from './chapters/2-records.ts';
import { customRows, CHECKS as TOOLS } from './chapters/2-tools.ts';
import { runChecks } from './run.ts';

// Two gateways: one with a relying party of its own.
t.jobs = 2;
await Promise.all([
  t.test('contract 2.1 to 2.4', (test) => runChecks(test, RECORDS)),
  t.test('contract 2.5 to 2.9', (test) =>
    runChecks(test, [...TOOLS, ...EVENTS], {
      configuration: (core) => ({ ...customRows(core), Fido2: FIDO2 }),
    }),
  ),
]);
