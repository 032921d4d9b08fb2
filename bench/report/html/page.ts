/** The report as one page: no script, nothing to fetch, and every chart's figures in a table beside it. */
import type { BenchReport } from '../report.ts';
import { circumstances, doubt } from '../wording.ts';
import { escapeHtml } from './escape.ts';
import { list } from './parts.ts';
import { sectionOf, targetsTable } from './section.ts';
import { STYLE } from './style.ts';

export function page(report: BenchReport): string {
  const { scenarios, skipped, gateway } = report;
  const [only] = scenarios;
  const what = scenarios.length === 1 && only !== undefined ? only.name : `${scenarios.length} scenarios`;
  const title = `Gatehouse ${gateway.version}: ${what}`;
  const facts = circumstances(report).map(
    ([label, text]) =>
      `<dt>${label}</dt><dd>${label === 'Command' ? `<code>${escapeHtml(text)}</code>` : escapeHtml(text)}</dd>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${escapeHtml(title)}</h1>
<dl class="facts">${facts.join('')}</dl>
${contents(report)}
</header>
<main>
${summary(report)}
${scenarios.map(sectionOf).join('\n')}
${
  skipped.length === 0
    ? ''
    : `<section aria-labelledby="left-out"><h2 id="left-out">Left out</h2>${list(
        'notes',
        skipped.map(({ name, reason }) => `${name}: ${reason}`),
      )}</section>`
}
</main>
</body>
</html>
`;
}

function contents({ scenarios }: BenchReport): string {
  if (scenarios.length < 2) return '';
  const links = scenarios.map(
    ({ name, failure }) =>
      `<li><a href="#${escapeHtml(name)}"${failure === undefined ? '' : ' class="failed"'}>${escapeHtml(name)}${failure === undefined ? '' : ' (failed)'}</a></li>`,
  );
  return `<nav aria-label="Scenarios"><ul>${links.join('')}</ul></nav>`;
}

/** Every target of the run in one table; a run of one scenario has it in its section. */
function summary(report: BenchReport): string {
  const { scenarios } = report;
  const rows = scenarios.flatMap(({ name, targets }) => targets.map((target) => ({ name, target })));
  if (scenarios.length < 2 || rows.length === 0) return '';
  const doubted = doubt(report);
  const count = (verdict: string) => rows.filter(({ target }) => target.verdict === verdict).length;
  const table = targetsTable(
    'all scenarios',
    rows.map(({ target }) => target),
    rows.map(({ name }) => name),
  );
  return `<section aria-labelledby="targets"><h2 id="targets">Targets</h2><p class="soft">${count('met')} met, ${count('missed')} missed, ${count('not measured')} not measured.</p>${list('warnings', doubted === undefined ? [] : [doubted])}${table}</section>`;
}
