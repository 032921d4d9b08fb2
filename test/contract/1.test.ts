/** The service as a client of the contract sees it: conventions and section 1. */
import t from 'tap';
import { CHECKS } from './chapters/1.ts';
import { runChecks } from './run.ts';

await runChecks(t, CHECKS);
