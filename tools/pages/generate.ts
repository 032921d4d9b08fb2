/** `npm run generate` prints every page that tables say. `test/docs/generated.test.ts` compares the pages with this output. */
import { readFileSync, writeFileSync } from 'node:fs';
import { readSections } from '../../test/contract/specification.ts';
import {
  ALERTS_FILE,
  alertsText,
  DASHBOARD_FILE,
  dashboardText,
  RUNBOOKS_FILE,
  runbooksText,
} from '../dashboards/print-dashboards.ts';
import { DEPENDENCIES_FILE, dependenciesPage } from '../packaging/print-dependencies.ts';
import { configurationPage } from './print-configuration.ts';
import { logsPage } from './print-logs.ts';
import { metricsPage } from './print-metrics.ts';
import { MODULES_FILE, modulesText } from './print-modules.ts';
import { readmePage, SPECIFICATION_FILE, specificationPage } from './print-specification.ts';

type Pages = Readonly<Record<string, string>>;

/**
 * Texts by path, and citations that the specification does not have: the pages that cite are then left out. The checks that
 * cite read the specification when they are loaded, so `print` puts it in its place before.
 */
export async function generated(print: (pages: Pages) => void = () => {}): Promise<{
  readonly pages: Pages;
  readonly faults: readonly string[];
}> {
  const specification = specificationPage();
  print({ [SPECIFICATION_FILE]: specification });
  const { gapPages } = await import('./print-spec-trace.ts');
  const { faults, pages: gaps } = gapPages(readSections(specification));
  const pages = {
    'README.md': readmePage(),
    'docs/reference/CONFIGURATION.md': configurationPage(),
    'docs/reference/LOGS.md': logsPage(),
    'docs/reference/METRICS.md': metricsPage(),
    [DEPENDENCIES_FILE]: dependenciesPage(),
    [SPECIFICATION_FILE]: specification,
    [MODULES_FILE]: modulesText(),
    [DASHBOARD_FILE]: dashboardText(),
    [ALERTS_FILE]: alertsText(),
    [RUNBOOKS_FILE]: runbooksText(),
    ...gaps,
  };
  print(pages);
  return { pages, faults };
}

/** Paths whose file `read` does not have as `text`. */
export function differing(pages: Pages, read = (path: string) => readFileSync(path, 'utf8')): string[] {
  return Object.entries(pages)
    .filter(([path, text]) => read(path) !== text)
    .map(([path]) => path);
}

if (process.argv[1]?.endsWith('generate.js')) {
  const { faults } = await generated((pages) => {
    for (const path of differing(pages)) {
      writeFileSync(path, pages[path] ?? '');
      process.stdout.write(`${path}\n`);
    }
  });
  for (const fault of faults) process.stderr.write(`${SPECIFICATION_FILE} ${fault}\n`);
  if (faults.length > 0) process.exitCode = 1;
}
