/** The table of log lines: messages and fields are used once and as declared. */
import t from 'tap';
import { configurationSchema } from '../../src/domain/config/file.ts';
import type { Log } from '../../src/io/observability/log.ts';
import { LOG_FIELDS } from '../../src/io/observability/log-fields.ts';
import {
  type LogLineDefinition,
  PROGRAM_LINES,
  type ProgramFields,
  type ProgramLine,
  TRAFFIC_LINES,
} from '../../src/io/observability/log-lines.ts';
import { METRICS } from '../../src/io/observability/metric-table.ts';

const lines: readonly LogLineDefinition[] = [
  ...Object.values(PROGRAM_LINES),
  ...Object.values(TRAFFIC_LINES),
];

t.test('logs: no message twice, no field without a line', async (t) => {
  t.equal(new Set(lines.map(({ message }) => message)).size, lines.length);
  const used = new Set(lines.flatMap(({ fields }) => fields.map((name) => name.replace('?', ''))));
  t.same([...used].sort(), Object.keys(LOG_FIELDS).sort());
});

t.test('logs: the metric and the configuration name the lines that they are about', async (t) => {
  const description = JSON.parse(
    JSON.stringify(configurationSchema.properties.Log.properties.requests),
  ).description;
  for (const { message } of Object.values(TRAFFIC_LINES)) {
    t.match(METRICS.gatehouse_log_lines_total.help, `"${message}"`);
    t.match(description, `"${message}"`);
  }
});

t.test('logs: an undeclared line, a missing field and a foreign one do not compile', async (t) => {
  type Fits<Given, Wanted> = Given extends Wanted ? true : false;
  // Each element is a type: `true` in place of `false` would not compile.
  const fits: [
    Fits<'stopping', ProgramLine>,
    Fits<'starting', ProgramLine>,
    Fits<[{ signal: string }], ProgramFields<'stopping'>>,
    Fits<[{ signal: number }], ProgramFields<'stopping'>>,
    Fits<[], ProgramFields<'stopping'>>,
    Fits<[{ err: Error }], ProgramFields<'diskRecovered'>>,
    Fits<[{ detail: string }], ProgramFields<'unsafeDeployment'>>,
    Fits<{ info(message: string): void }, Log>,
  ] = [true, false, true, false, false, false, true, false];
  t.equal(fits.length, 8);
});
