/** Contract checks of sections 6 to 9, except the HTTP rate limiter. */
import t from 'tap';
import { CHECKS as EVENTS } from './chapters/6.ts';
import { CHECKS as ERRORS } from './chapters/7.ts';
import { CHECKS as FILE_LIMITS } from './chapters/8-files.ts';
import { CHECKS as VERSIONS } from './chapters/9.ts';
import { runChecks } from './run.ts';

// Uploads that checks of other chapters leave open would count.
await runChecks(t, [...EVENTS, ...ERRORS, ...FILE_LIMITS, ...VERSIONS], {});
