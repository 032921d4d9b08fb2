/** Contract checks of sections 4 and 5. */
import t from 'tap';
import { CHECKS as ACCOUNTS } from './chapters/4-accounts.ts';
import { CHECKS as FILES } from './chapters/4-files.ts';
import { CHECKS as MCP } from './chapters/4-mcp.ts';
import { CHECKS as AUTHENTICATION } from './chapters/5.ts';
import { runChecks } from './run.ts';

await runChecks(t, [...MCP, ...ACCOUNTS, ...FILES, ...AUTHENTICATION]);
