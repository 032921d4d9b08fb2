/** docs/BENCHMARKS.md from the JSON of a run. */
import type { Participant } from './participants.ts';
import type { BenchReport, ScenarioReport } from './report.ts';
import type { Series } from './scenario.ts';
import {
  type Cells,
  circumstances,
  doubt,
  figureCells,
  howOf,
  number,
  participantCells,
  ratioCells,
  subjectCells,
  targetCells,
} from './wording.ts';

const HEAD = `# Benchmarks

Every figure on this page comes from one run of the suite and is written by \`node build/bench/print-benchmarks.js RUN.json > docs/BENCHMARKS.md\`; change nothing here by hand. Why a figure is what it is, with the profiles: [FIGURES.md](../bench/FIGURES.md). How to run it yourself: [README](../README.md#load-testing).`;

const HOW = `A ratio is the median of the ratios of interleaved rounds, each of two neighbours in time, with its 95 % interval; above 1 the gateway is faster, or works less. Latencies are medians of the rounds' percentiles. \`CPU us\` is processor time of the subject's processes, all threads, for one good answer. A generator above 95 % busy is marked \`!\`: that rate is a lower bound. On hosts that take memory back, ratios of files may spread by 10 to 30 % from run to run. Every round is in the JSON of a run.`;

export function benchmarks(report: BenchReport): string {
  const facts: Cells = {
    headings: ['', ''],
    rows: circumstances(report).map(([label, text]) => [label, text]),
  };
  const blocks = [
    HEAD,
    '## What was run',
    table(facts),
    HOW,
    ...targetBlocks(report),
    '## Scenarios',
    ...report.scenarios.flatMap(scenarioBlocks),
    ...report.skipped.map(({ name, reason }) => `\`${name}\` is left out: ${cell(reason)}.`),
    ...participantBlocks(report.scenarios),
  ];
  return `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
}

function targetBlocks(report: BenchReport): string[] {
  const { scenarios } = report;
  const rows = scenarios.flatMap(({ name, targets }) =>
    targetCells(targets).rows.map((row) => ({ name, row })),
  );
  if (rows.length === 0) return [];
  const { headings } = targetCells([]);
  const linked = rows.map(({ name, row: [first = '', ...others] }) => [`[${first}](#${name})`, ...others]);
  return ['## Targets', `**${doubt(report) ?? ''}**`.replace('****', ''), table({ headings, rows: linked })];
}

function scenarioBlocks(scenario: ScenarioReport): string[] {
  const { name, summary, failure, warnings, ratios, figures, series, notes } = scenario;
  return [
    `### ${name}`,
    `${sentence(summary)} ${sentence(howOf(scenario))}`,
    failure === undefined ? '' : `**Failed:** ${cell(failure)}`,
    items(warnings.map((warning) => `**${cell(warning)}**`)),
    table(subjectCells(scenario)),
    table(ratioCells(ratios)),
    table(figureCells(figures)),
    ...series.map(seriesTable),
    items(notes.map(cell)),
  ];
}

function seriesTable({ title, x, y, lines }: Series): string {
  const at = [...new Set(lines.flatMap(({ points }) => points.map(([value]) => value)))].sort(
    (a, b) => a - b,
  );
  const rows = lines.map(({ label, points }) => [
    label,
    ...at.map((value) => number(points.find(([each]) => each === value)?.[1] ?? Number.NaN)),
  ]);
  const headings = [`${y.label} by ${x.label}`, ...at.map((value) => value.toLocaleString('en'))];
  return `${cell(title)}:\n\n${table({ headings, rows })}`;
}

/** Each once, whatever number of scenarios it is part of. */
function participantBlocks(scenarios: readonly ScenarioReport[]): string[] {
  const all = new Map<string, Participant>();
  for (const { participants } of scenarios) for (const each of participants) all.set(each.name, each);
  return all.size === 0 ? [] : ['## Floors and peers', table(participantCells([...all.values()]))];
}

function table({ headings, rows }: Cells): string {
  if (rows.length === 0) return '';
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(headings), `|${headings.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

function sentence(text: string): string {
  return `${cell(text.charAt(0).toUpperCase() + text.slice(1))}.`;
}

function items(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n');
}

/** One line that is no markup; a missed target stands out. */
function cell(text: string): string {
  const plain = text.replace(/\s+/g, ' ').replaceAll('<', '&lt;').replaceAll('|', '\\|');
  return /^missed/.test(plain) ? `**${plain}**` : plain;
}
