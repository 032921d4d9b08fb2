/** docs/BENCHMARKS.md out of the JSON of a run, and of a second one of the same command. */
import type { Participant } from './participants.ts';
import { APART_MAX, type Repeated, repeats } from './repeat.ts';
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
  percent,
  ratioCells,
  subjectCells,
  targetCells,
} from './wording.ts';

const HEAD = `# Benchmarks

Every figure on this page comes from one run of the suite and is written by \`node build/bench/print-benchmarks.js RUN.json [SECOND.json] > docs/BENCHMARKS.md\`; change nothing here by hand. Why a figure is what it is, with the profiles: [SPEED.md](SPEED.md). How to run it yourself: [README](../README.md#load-testing).`;

const HOW = `Without \`--target\` the suite starts the gateway on free ports, with a temporary data folder and raised limits (through \`Settings\`; the limiter counts every request), makes accounts through the public API, and starts floors and peers as processes of their own. The load generator is a process too: bare sockets, one request at a time on each connection, closed loop or, with \`--rate\`, open loop with latencies from the moment a request was due. Every answer is checked for its content. Tool calls and files have two processes of each subject that take rounds in turn, because two starts of one program differ by some percent, and the limiter's loops have three. Each subject is under load for some seconds first, which count nowhere; then come rounds, until the ratios are sure or the time is over. A round is a few slices of some 20 ms for each subject, in turn, another one first each time (A B C B C A), over connections that stay open; a slice ends when all that it asked for is answered, and its time and processor time end with it. Whole files, and events to thousands of streams, take turns one by one. Before \`all\` memory is touched and kept from being given back to the host of a virtual machine. There the scenarios themselves take turns of six seconds, each spread over the whole run: what waits is halted (SIGSTOP), and its first half second afterwards counts nowhere. A ratio is the median of the ratios of the rounds, each of two neighbours in time, with its 95 % interval from order statistics, which asks for no distribution; latencies are medians of the rounds' percentiles. \`CPU us\` is processor time of the subject's processes, all threads, for one good answer; a ratio by processor time is the other's over ours. Every single round is in the JSON. A generator above 95 % busy is marked \`!\`: that rate is a lower bound.`;

export function benchmarks(report: BenchReport, second?: BenchReport): string {
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
    ...(second === undefined ? [] : repeatBlocks(report, second)),
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

function repeatBlocks(first: BenchReport, second: BenchReport): string[] {
  const all = repeats(first, second);
  const share = (some: readonly Repeated[]) =>
    `${some.filter(({ apart }) => apart <= APART_MAX).length} of ${some.length}`;
  const shareBy = (by: Repeated['by']) => `${share(all.filter((each) => each.by === by))} by ${by}`;
  const judged = share(all.filter((each) => each.judged));
  const overlapping = all.filter(({ overlap }) => overlap).length;
  const rows = all.map((repeated) => [repeated.scenario, ...repeatRow(repeated)]);
  return [
    '## The same command twice',
    `Ratios of the two runs (the second at ${second.startedUtc.slice(0, 16).replace('T', ' ')} UTC) that are at most ${percent(APART_MAX)} apart: ${shareBy('rate')}, ${shareBy('processor time')}, ${judged} of those that a target is judged by (in italics); the others are marked. The 95 % intervals of both runs overlap for ${overlapping} of ${all.length}.`,
    table({ headings: ['scenario', 'ratio', 'by', 'first', 'second', 'apart', 'intervals'], rows }),
  ];
}

function repeatRow({ what, by, judged, first, second, apart, overlap }: Repeated): string[] {
  const share = `${(apart * 100).toFixed(1)} %`;
  const marked = apart > APART_MAX ? `**${share}**` : share;
  const name = judged ? `*${what}*` : what;
  return [name, by, first.toFixed(3), second.toFixed(3), marked, overlap ? 'overlap' : 'apart'];
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
