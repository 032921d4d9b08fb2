/** The service as a client of the contract sees it: section 4. */
import t from 'tap';
import { customRows } from './chapters/2-tools.ts';
import { CHECKS as ACCOUNTS } from './chapters/4-accounts.ts';
import { CHECKS as FILES } from './chapters/4-files.ts';
import { CHECKS as MCP } from './chapters/4-mcp.ts';
import { CHECKS as STORAGE } from './chapters/4-storage.ts';
import { runChecks } from './run.ts';

t.setTimeout(120_000);

await runChecks(t, [...MCP, ...ACCOUNTS, ...FILES, ...STORAGE], { configuration: customRows });
