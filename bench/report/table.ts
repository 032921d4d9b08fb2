/** The report as text for a terminal: one table a scenario, then ratios, targets and what speaks against them. */
import type { BenchReport, ScenarioReport } from './report.ts';
import {
  type Cells,
  circumstances,
  doubt,
  figureCells,
  howOf,
  participantCells,
  ratioCells,
  subjectCells,
  targetCells,
} from './wording.ts';

export function tables(report: BenchReport): string {
  const { scenarios, skipped } = report;
  const doubted = scenarios.length > 1 ? doubt(report) : undefined;
  const lines = [
    ...circumstances(report).map(([label, text]) => `${`${label}:`.padEnd(16)}${text}`),
    ...scenarios.flatMap((scenario) => ['', ...scenarioLines(scenario)]),
    ...skipped.flatMap(({ name, reason }) => ['', `${name} left out: ${reason}`]),
    ...(doubted === undefined ? [] : ['', `! ${doubted}`]),
    ...failures(scenarios),
  ];
  return `${lines.join('\n')}\n`;
}

function scenarioLines(scenario: ScenarioReport): string[] {
  const { name, failure, ratios, targets, figures, participants, warnings, notes } = scenario;
  const present = participants.filter(({ leftOut }) => leftOut === undefined);
  const absent = participants.filter(({ leftOut }) => leftOut !== undefined);
  return [
    `${name}: ${howOf(scenario)}`,
    ...(failure === undefined ? [] : [`FAILED: ${failure}`]),
    ...lay(subjectCells(scenario)),
    ...lay(ratioCells(ratios)),
    ...lay(figureCells(figures)),
    ...lay(targetCells(targets)),
    ...lay(participantCells(present)),
    '',
    ...absent.map(({ name, leftOut }) => `left out: ${name}, ${leftOut}`),
    ...warnings.map((warning) => `! ${warning}`),
    ...notes,
  ];
}

/** Repeats the failures at the end of the output. */
function failures(scenarios: readonly ScenarioReport[]): string[] {
  const failed = scenarios.filter(({ failure }) => failure !== undefined).map(({ name }) => name);
  return failed.length === 0 || scenarios.length === 1 ? [] : ['', `FAILED: ${failed.join(', ')}`];
}

/** A blank line and the aligned rows, or nothing: the first column left, figures right, the last one as it is. */
function lay({ headings, rows }: Cells): string[] {
  if (rows.length === 0) return [];
  const all = [headings, ...rows];
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const figures = rows.every((row) => row.slice(1).every((cell) => !/[a-z]{3}/i.test(cell)));
  const pad = (cell: string, column: number) =>
    figures && column > 0 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0);
  return ['', ...all.map((row) => row.map(pad).join('  ').trimEnd())];
}
