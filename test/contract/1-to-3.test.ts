/** Contract checks of the conventions and of sections 1 to 3. */
import t from 'tap';
import { CHECKS as SERVICE } from './chapters/1.ts';
import { CHECKS as EVENTS } from './chapters/2-events.ts';
import { CHECKS as RECORDS } from './chapters/2-records.ts';
import { CHECKS as TOOLS } from './chapters/2-tools.ts';
import { CHECKS as STATES } from './chapters/3.ts';
import { runChecks } from './run.ts';

await runChecks(t, [...SERVICE, ...RECORDS, ...TOOLS, ...EVENTS, ...STATES]);
