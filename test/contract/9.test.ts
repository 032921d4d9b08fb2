/** The service as a client of the contract sees it: section 9. */
import t from 'tap';
import { CHECKS } from './chapters/9.ts';
import { runChecks } from './run.ts';

await runChecks(t, CHECKS);
