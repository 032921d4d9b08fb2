/** Chapters of the contract client, in the order of the contract. */

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
import { CHECKS as CONFIGURATION } from './chapters/configuration.ts';
import type { Chapter } from './check.ts';

/** Chapters of one test file share its gateways: a start takes longer than most chapters. */
export const CHAPTERS: readonly Chapter[] = [
  { file: '1', test: '1-to-3', checks: SERVICE },
  { file: '2-records', test: '1-to-3', checks: RECORDS },
  { file: '2-tools', test: '1-to-3', checks: TOOLS },
  { file: '2-events', test: '1-to-3', checks: EVENT_RECORDS },
  { file: '3', test: '1-to-3', checks: STATES },
  { file: '4-mcp', test: '4-and-5', checks: MCP },
  { file: '4-accounts', test: '4-and-5', checks: ACCOUNTS },
  { file: '4-files', test: '4-and-5', checks: FILES },
  { file: '4-storage', test: 'gateways', checks: STORAGE },
  { file: '5', test: '4-and-5', checks: AUTHENTICATION },
  { file: '6', test: '6-to-9', checks: EVENTS },
  { file: '7', test: '6-to-9', checks: ERRORS },
  { file: '8-limits', test: 'gateways', checks: LIMITS },
  { file: '8-files', test: '6-to-9', checks: FILE_LIMITS },
  { file: '9', test: '6-to-9', checks: VERSIONS },
  { file: 'configuration', test: 'gateways', checks: CONFIGURATION },
];

/** The test file that runs a chapter. */
export function testOf({ test }: Chapter): string {
  return `test/contract/${test}.test.ts`;
}
