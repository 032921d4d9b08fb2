/** The service as a client of the contract sees it: section 7. */
import t from 'tap';
import { customRows } from './chapters/2-tools.ts';
import { CHECKS } from './chapters/7.ts';
import { runChecks } from './run.ts';

await runChecks(t, CHECKS, { configuration: customRows });
