/** The service as a client of the contract sees it: section 3. */
import t from 'tap';
import { CHECKS } from './chapters/3.ts';
import { runChecks } from './run.ts';

await runChecks(t, CHECKS);
