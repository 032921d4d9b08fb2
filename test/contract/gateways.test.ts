/** Contract checks that need gateways with other configurations. */
import t from 'tap';
import { CHECKS as STORAGE } from './chapters/4-storage.ts';
import { CHECKS as LIMITS } from './chapters/8-limits.ts';
import { CHECKS as CONFIGURATION, configuration } from './chapters/configuration.ts';
import { runChecks } from './run.ts';

/** No check asks a module of the sandbox, whose threads are a third of a start. */
const WITHOUT_SANDBOX = { args: [] };

t.jobs = 2;
await Promise.all([
  t.test('contract: default limits', (test) =>
    runChecks(test, LIMITS, { settings: {}, launch: WITHOUT_SANDBOX }),
  ),
  t.test('contract: configured', (test) =>
    runChecks(test, [...STORAGE, ...CONFIGURATION], { configuration, launch: WITHOUT_SANDBOX }),
  ),
]);
