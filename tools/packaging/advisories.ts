/**
 * `node build/tools/packaging/advisories.js [FILE]`: advisories for packages of the lock, as `npm audit --json` or a file of
 * its output reports them. Ends with 1 for one without an entry in `ALLOWED`. A registry without audits is named, and skipped.
 */
import { readFileSync } from 'node:fs';
import { runSync } from '../../kit/run-sync.ts';
import { MINUTE_MS, SECOND_MS } from '../../src/domain/time.ts';
import { closureOf, type LockedPackages, readLock } from './lock.ts';

/** Advisories that are no danger here, by id (GHSA-…), with the reason. */
const ALLOWED: Readonly<Record<string, string>> = {};

const ANSWER_TIMEOUT_MS = 20 * SECOND_MS;

interface Advisory {
  readonly name: string;
  readonly title: string;
  readonly url: string;
  readonly severity: string;
  readonly range: string;
}

/** Version 2 of what npm prints. `via`: an advisory, or the name of another package of the report. */
interface AuditReport {
  readonly auditReportVersion: 2;
  readonly vulnerabilities: Readonly<
    Record<string, { readonly nodes: readonly string[]; readonly via: readonly (Advisory | string)[] }>
  >;
}

type Audit =
  | { readonly kind: 'report'; readonly report: AuditReport }
  /** The registry did not answer. */
  | { readonly kind: 'skipped'; readonly why: string };

/** Throws for anything that is neither a report nor the failure of a registry. */
export function readAudit(text: string): Audit {
  const value = JSON.parse(text) as Partial<AuditReport> & { message?: unknown };
  if (value.auditReportVersion === 2 && typeof value.vulnerabilities === 'object')
    return { kind: 'report', report: value as AuditReport };
  if (typeof value.message === 'string') return { kind: 'skipped', why: value.message };
  throw new Error(`no report of npm audit: ${text.slice(0, 500)}`);
}

/** One line for each advisory that is not allowed, for each allowed one without a package, and for a report of another lock. */
export function advisoryFaults(
  { vulnerabilities }: AuditReport,
  packages: LockedPackages,
  allowed: Readonly<Record<string, string>>,
): string[] {
  const ofRun = new Set(closureOf([''], packages));
  const seen = new Set<string>();
  const faults: string[] = [];
  for (const { nodes, via } of Object.values(vulnerabilities)) {
    for (const node of nodes) if (packages[node] === undefined) faults.push(`${node}: not in the lock`);
    for (const advisory of via) {
      if (typeof advisory === 'string') continue;
      const id = advisory.url.slice(advisory.url.lastIndexOf('/') + 1);
      seen.add(id);
      if (allowed[id] !== undefined) continue;
      const use = nodes.some((node) => ofRun.has(node)) ? 'a run' : 'development';
      const { name, range, severity, title, url } = advisory;
      faults.push(`${id}: ${name} ${range}, of ${use}, ${severity}: ${title} (${url})`);
    }
  }
  for (const id of Object.keys(allowed))
    if (!seen.has(id)) faults.push(`${id}: allowed, but no package of the lock has it`);
  return faults;
}

/** Returns the output of npm with any exit code: 1 is for advisories, and for a registry that does not answer. */
function audit(): string {
  const limits = ['--fetch-retries=0', `--fetch-timeout=${ANSWER_TIMEOUT_MS}`];
  const { stdout, error } = runSync('npm', ['audit', '--json', '--package-lock-only', ...limits], {
    boundMs: MINUTE_MS,
  });
  if (error !== undefined) throw error;
  return stdout;
}

function main(file: string | undefined): void {
  const result = readAudit(file === undefined ? audit() : readFileSync(file, 'utf8'));
  if (result.kind === 'skipped') {
    process.stdout.write(`advisories: skipped, no package was checked: ${result.why}\n`);
    return;
  }
  const faults = advisoryFaults(result.report, readLock(), ALLOWED);
  for (const fault of faults) process.stderr.write(`advisories: ${fault}\n`);
  if (faults.length > 0) process.exitCode = 1;
  else process.stdout.write('advisories: none for the packages of the lock\n');
}

if (process.argv[1]?.endsWith('advisories.js')) main(process.argv[2]);
