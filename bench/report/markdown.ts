/** docs/BENCHMARKS.md from the JSON of a run: one table a scenario. */
import { type Measured, processorTimeOf } from '../measure/measure.ts';
import { type BenchReport, generatorLimited, latencyOf, middleRound, type ScenarioReport } from './report.ts';
import type { Judged } from './targets.ts';
import {
  circumstances,
  doubt,
  interval,
  mebibytes,
  milliseconds,
  rate,
  shownOf,
  verdictOf,
  wantedOf,
} from './wording.ts';

const HEAD = `# Benchmarks

Written from one run of the suite by \`node build/bench/report/print-benchmarks.js RUN.json > docs/BENCHMARKS.md\`; do not edit. How to run it: \`bench/README.md\`. Why a figure is what it is: \`bench/FIGURES.md\`.`;

const HOW = `A row holds a server, what it did, and the ratio of the gateway's row above it to it: the median of interleaved rounds with its 95 % interval, above 1 where the gateway is faster or takes less processor time. \`CPU us\` is processor time for one good answer, all threads. \`!\`: the load generator was the limit, the rate is a lower bound. Rows without a ratio or a target, curves, settings of the other servers and every round are in the JSON and the HTML page of a run. On hosts that take memory back, ratios of files may spread by 10 to 30 % from run to run.`;

export function benchmarks(report: BenchReport): string {
  const { scenarios, skipped } = report;
  const doubted = doubt(report);
  const blocks = [
    HEAD,
    [...circumstances(report), ['Beside', besideOf(scenarios)]]
      .map(([label = '', text = '']) => `- ${label}: ${label === 'Command' ? `\`${text}\`` : plain(text)}`)
      .join('\n'),
    HOW,
    countOf(scenarios.flatMap(({ targets }) => targets)),
    ...(doubted === undefined ? [] : [`**${plain(doubted)}**`]),
    ...scenarios.map(scenarioTable),
    ...skipped.map(({ name, reason }) => `\`${name}\` is left out: ${plain(reason)}.`),
  ];
  return `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
}

/** Versions of all other servers; what was left out says so. */
function besideOf(scenarios: readonly ScenarioReport[]): string {
  const all = scenarios.flatMap(({ participants }) => participants);
  const texts = all.map(({ name, version, leftOut }) =>
    leftOut === undefined ? `${name} (${version})` : `${name} left out (${leftOut})`,
  );
  return [...new Set(texts)].join(', ');
}

function countOf(targets: readonly Judged[]): string {
  const count = (verdict: Judged['verdict']) => targets.filter((each) => each.verdict === verdict).length;
  return `Targets: ${count('met')} met, ${count('missed')} missed, ${count('not measured')} not measured.`;
}

function scenarioTable(scenario: ScenarioReport): string {
  const { name, unit, failure, noisy, ratios, targets, figures } = scenario;
  const headings = ['p50 ms', 'p99 ms', 'CPU us', 'RSS MiB', 'by rate', 'by processor time', 'target'];
  const judgedFigures = figures.flatMap((figure) => {
    const judged = targets.find(({ what }) => what === figure.name);
    return judged === undefined
      ? []
      : [
          [
            `${figure.name}: ${shownOf(figure, figure.value)} ${figure.unit}`.trim(),
            '',
            '',
            '',
            '',
            '',
            '',
            '',
            goal(judged),
          ],
        ];
  });
  const lines = [
    [`**${name}**${noisy ? ' (busy machine)' : ''}`, `${unit}/s`, ...headings],
    Array.from({ length: headings.length + 2 }, () => '---'),
    ...shownSubjects(scenario).map((subject) => subjectRow(scenario, subject)),
    ...judgedFigures,
    // A target whose other side did not take part has no row of its own.
    ...targets
      .filter(({ verdict }) => verdict === 'not measured')
      .map((judged) => [judged.what, '', '', '', '', '', '', '', goal(judged)]),
    ...(failure === undefined ? [] : [[`**Failed:** ${failure}`, '', '', '', '', '', '', '', '']]),
  ];
  return lines.length === 2 && ratios.length === 0
    ? ''
    : lines.map((cells) => `| ${cells.map(plain).join(' | ')} |`).join('\n');
}

/** Those of a ratio, each gateway's row before those it is compared with; all, where nothing is compared or judged. */
function shownSubjects({ subjects, ratios, targets }: ScenarioReport): readonly Measured[] {
  if (ratios.length === 0) return targets.length === 0 ? subjects : [];
  const firsts = [...new Set(ratios.map(({ of }) => of))];
  const names = firsts.flatMap((first) => [
    first,
    ...ratios.filter(({ of }) => of === first).map(({ against }) => against),
  ]);
  return [...new Set(names)].flatMap((each) => subjects.filter(({ name }) => name === each));
}

function subjectRow({ ratios, targets }: ScenarioReport, measured: Measured): string[] {
  const { name, medianPerSecond, rounds } = measured;
  const latency = latencyOf(rounds);
  const own = ratios.filter(({ against }) => against === name);
  return [
    name,
    `${rate(medianPerSecond)}${generatorLimited(rounds) ? ' !' : ''}`,
    milliseconds(latency?.p50),
    milliseconds(latency?.p99),
    processorTimeOf(measured)?.toFixed(1) ?? '',
    mebibytes(middleRound(rounds)?.rssBytes),
    own.map((ratio) => interval(ratio.rate)).join('; '),
    own.map(({ processorTime }) => (processorTime === undefined ? '' : interval(processorTime))).join('; '),
    own
      .flatMap(({ of, against }) => targets.filter(({ what }) => what === `${of} / ${against}`))
      .map((judged) => `${judged.by}: ${goal(judged)}`)
      .join('; '),
  ];
}

/** A missed target stands out. */
function goal(judged: Judged): string {
  const verdict = verdictOf(judged);
  return `${wantedOf(judged)}: ${judged.verdict === 'missed' ? `**${verdict}**` : verdict}`;
}

/** One line that is no markup. */
function plain(text: string): string {
  return text.replace(/\s+/g, ' ').replaceAll('<', '&lt;').replaceAll('|', '\\|');
}
