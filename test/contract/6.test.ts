/** The service as a client of the contract sees it: section 6. */
import t from 'tap';
import { CHECKS } from './chapters/6.ts';
import { runChecks } from './run.ts';

t.setTimeout(120_000);

await runChecks(t, CHECKS);
