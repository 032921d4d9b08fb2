/** Log lines for people, and levels: the same fields, one line, ASCII alone. */
import t from 'tap';
import { runSync } from '../../../kit/run-sync.ts';
import type { LineSink } from '../../../src/io/observability/log.ts';
import { prettyLine, styledSink } from '../../../src/io/observability/pretty.ts';

const LOG = new URL('../../../src/io/observability/log.js', import.meta.url).href;

function collecting(): LineSink & { readonly lines: string[] } {
  const lines: string[] = [];
  return {
    lines,
    write: (line) => void lines.push(line),
    counters: () => ({ written: lines.length, dropped: 0 }),
    close: async () => undefined,
  };
}

const lineOf = (level: string, more: object = {}) =>
  `${JSON.stringify({ level, time: '2026-11-24T00:00:00.000Z', msg: 'request', ...more })}\n`;

t.test(
  'pretty: time, level and message, then each field; texts with blanks or quotes in quotes',
  async (t) => {
    const line = lineOf('info', {
      status: 200,
      path: '/a',
      userAgent: 'a "b"',
      empty: '',
      names: ['x', 'y'],
    });
    t.equal(
      prettyLine(line),
      '2026-11-24T00:00:00.000Z INFO  request status=200 path=/a userAgent="a \\"b\\"" empty="" names=["x","y"]\n',
    );
  },
);

t.test('pretty: nothing from outside ends a line or reaches a terminal', async (t) => {
  const dangers = ['a\nb', 'a\u001b[2J', 'a\u009b2J', 'a\u202eb', 'a b=c'];
  for (const danger of dangers) {
    const line = prettyLine(lineOf('warn', { path: danger }));
    t.match(line, /^[\x20-\x7e]+\n$/, JSON.stringify(danger));
    t.ok(line.includes(' path="'), 'in quotes');
  }
});

t.test('pretty: a stack follows its line, indented', async (t) => {
  const line = prettyLine(
    lineOf('error', { err: { type: 'Error', message: 'x', stack: 'Error: x\n    at y' } }),
  );
  t.equal(line, '2026-11-24T00:00:00.000Z ERROR request\n    Error: x\n        at y\n');
});

t.test('levels: a sink leaves out what is below its level, in both formats', async (t) => {
  const lines = ['info', 'warn', 'error'].map((level) => lineOf(level));
  for (const [level, count] of [
    ['info', 3],
    ['warn', 2],
    ['error', 1],
  ] as const) {
    for (const format of ['json', 'pretty'] as const) {
      const sink = collecting();
      const styled = styledSink(sink, { format, level });
      for (const line of lines) styled.write(line);
      t.equal(sink.lines.length, count, `${level} ${format}`);
      t.equal(sink.lines.at(-1), format === 'json' ? lines[2] : prettyLine(lines[2] ?? ''));
    }
  }
  const plain = collecting();
  t.equal(styledSink(plain, { format: 'json', level: 'info' }), plain, 'the default costs nothing');
});

t.test('levels: the log of the process has the same form and the same levels', async (t) => {
  const program = `import { createLog } from ${JSON.stringify(LOG)};
    const log = createLog({ format: 'pretty', level: 'warn' });
    log.write('stopping', { signal: 'SIGTERM' });
    log.write('stopFailed', { err: new Error('broken') });`;
  const { stderr } = runSync(process.execPath, ['--input-type=module', '-e', program]);
  t.match(stderr, /^\S+ FATAL [^\n]+\n {4}Error: broken\n/);
  t.notMatch(stderr, /SIGTERM/);
});
