/** The chapters of the contract client, in the order of the contract. */

import { CHECKS as SERVICE } from './chapters/1.ts';
import { CHECKS as EVENT_RECORDS } from './chapters/2-events.ts';
import { CHECKS as RECORDS } from './chapters/2-records.ts';
import { CHECKS as TOOLS } from './chapters/2-tools.ts';
import { CHECKS as STATES } from './chapters/3.ts';
import { CHECKS as ACCOUNTS } from './chapters/4-accounts.ts';
import { CHECKS as FILES } from './chapters/4-files.ts';
import { CHECKS as MCP } from './chapters/4-mcp.ts';
import { CHECKS as STORAGE } from './chapters/4-storage.ts';
import { CHECKS as AUTHENTICATION } from './chapters/5.ts';
import { CHECKS as EVENTS } from './chapters/6.ts';
import { CHECKS as ERRORS } from './chapters/7.ts';
import { CHECKS as FILE_LIMITS } from './chapters/8-files.ts';
import { CHECKS as LIMITS } from './chapters/8-limits.ts';
import { CHECKS as VERSIONS } from './chapters/9.ts';
import { CHECKS as CONFIGURATION } from './chapters/9-configuration.ts';
import type { Chapter } from './check.ts';

export const CHAPTERS: readonly Chapter[] = [
  { file: '1', checks: SERVICE },
  { file: '2-records', checks: RECORDS },
  { file: '2-tools', checks: TOOLS },
  { file: '2-events', checks: EVENT_RECORDS },
  { file: '3', checks: STATES },
  { file: '4-mcp', checks: MCP },
  { file: '4-accounts', checks: ACCOUNTS },
  { file: '4-files', checks: FILES },
  { file: '4-storage', checks: STORAGE },
  { file: '5', checks: AUTHENTICATION },
  { file: '6', checks: EVENTS },
  { file: '7', checks: ERRORS },
  { file: '8-limits', checks: LIMITS },
  { file: '8-files', checks: FILE_LIMITS },
  { file: '9', checks: VERSIONS },
  { file: '9-configuration', checks: CONFIGURATION },
];

/** The test that runs a chapter. */
export function testOf({ file }: Chapter): string {
  return `test/contract/${file.slice(0, 1)}.test.ts`;
}
