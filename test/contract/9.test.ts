/** The service as a client of the contract sees it: section 9, and what a configuration says. */
import t from 'tap';
import { CHECKS as VERSIONS } from './chapters/9.ts';
import { CHECKS as CONFIGURATION, configuration } from './chapters/9-configuration.ts';
import { runChecks } from './run.ts';

await runChecks(t, [...VERSIONS, ...CONFIGURATION], { configuration });
