/** Programs that tests need and npm does not bring (.ci/tools): what of them is missing here, and may a test be skipped for it? */
import { readFileSync } from 'node:fs';
import { runSync } from '../../../kit/run-sync.ts';
import type { DepthName } from '../depth.ts';

export interface Tool {
  readonly name: string;
  /** For a shell. */
  readonly question: string;
  readonly debianPackage: string;
  /** The reason why a machine may lack it; empty: it may not. */
  readonly reason: string;
}

export interface Skip {
  readonly fullname: string;
  readonly skip?: string | boolean;
}

const NOT_INSTALLED = 127;
/** Reason of tests that a quick run leaves out. */
export const AT_FULL_DEPTH = 'runs in the gate and at full depth';
export const TOOLS = readTools(readFileSync('.ci/tools', 'utf8'));

export function readTools(text: string): Tool[] {
  const rows = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return rows.map((row) => {
    const [name = '', question = '', debianPackage = '', reason, ...more] = row
      .split('::')
      .map((cell) => cell.trim());
    if (name === '' || question === '' || reason === undefined || more.length > 0)
      throw new Error(`.ci/tools: a row has four cells: ${row}`);
    return { name, question, debianPackage, reason };
  });
}

/**
 * Says why tests of these tools are skipped; false when all are here. Throws when one is installed and does not work.
 */
export function lacking(...names: readonly string[]): string | false {
  for (const name of names) {
    const tool = TOOLS.find((each) => each.name === name);
    if (tool === undefined) throw new Error(`.ci/tools has no row ${name}`);
    if (!isHere(tool)) return skipOf(tool);
  }
  return false;
}

export function isHere({ name, question, reason }: Tool): boolean {
  const { status, signal, stderr } = runSync('sh', ['-c', question]);
  if (status === 0) return true;
  if (status === NOT_INSTALLED || reason !== '') return false;
  throw new Error(`${name} does not work: ${question} ended with ${status ?? signal}: ${stderr}`);
}

function skipOf({ name }: Tool): string {
  return `needs ${name}`;
}

/**
 * Names of tests that were skipped and may not be. `require`: `GATEHOUSE_TEST_REQUIRE`, with which only what a machine may
 * lack is skipped; undefined on a machine of which nothing is asked.
 */
export function refusedSkips(
  skips: readonly Skip[],
  require: string | undefined,
  depth: DepthName,
  tools: readonly Tool[] = TOOLS,
): string[] {
  if (require === undefined) return [];
  if (require !== 'all') throw new Error(`GATEHOUSE_TEST_REQUIRE must be all, not "${require}"`);
  const allowed = new Set(tools.filter(({ reason }) => reason !== '').map(skipOf));
  if (depth === 'quick') allowed.add(AT_FULL_DEPTH);
  return skips
    .filter(({ skip }) => typeof skip !== 'string' || !allowed.has(skip))
    .map(({ fullname, skip }) => `${fullname}: ${skip}`);
}
