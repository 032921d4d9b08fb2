/** Prints docs/reference/LOGS.md from the table of log lines. */
import { LOG_FIELDS } from '../../src/io/observability/log-fields.ts';
import {
  type LogLineDefinition,
  PROGRAM_LINES,
  TRAFFIC_LINES,
} from '../../src/io/observability/log-lines.ts';

function section(title: string, text: string, lines: Readonly<Record<string, LogLineDefinition>>): string[] {
  const rows = Object.values(lines).map(({ level, message, help, fields }) => {
    const shown = fields.map((name) =>
      name.endsWith('?') ? `\`${name.slice(0, -1)}\` (optional)` : `\`${name}\``,
    );
    return `| \`${message}\` | ${level} | ${shown.join(', ')} | ${help} |`;
  });
  const head = ['| Message | Level | Fields | Meaning |', '|---|---|---|---|'];
  return [`## ${title}`, '', text, '', ...head, ...rows, ''];
}

export function logsPage(): string {
  const fields = Object.entries(LOG_FIELDS).map(
    ([name, { type, meaning }]) => `| \`${name}\` | ${type} | ${meaning} |`,
  );
  return [
    '# Log lines',
    '',
    'Generated from `src/io/observability/log-lines.ts` by `npm run generate`. Each line on standard error is a JSON object: `level`, `time` (ISO 8601 in UTC), `msg`, and the fields of its message. How to choose lines: [operations.md](../operations.md#logs).',
    '',
    ...section('Process', 'Written at once.', PROGRAM_LINES),
    ...section(
      'Traffic',
      'Written in batches. `Log.requests` selects them. A reader that does not keep up loses lines, counted in `gatehouse_log_lines_total`.',
      TRAFFIC_LINES,
    ),
    '## Fields',
    '',
    '| Field | Type | Meaning |',
    '|---|---|---|',
    ...fields,
    '',
  ].join('\n');
}
