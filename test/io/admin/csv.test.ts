/** CSV of the panel: cells, the bound of rows, exports at a time, and what a slow or lost reader leaves behind. */
import t from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import {
  type CsvCell,
  CsvExports,
  csvCell,
  csvLine,
  EXPORT_ROWS_MAX,
  EXPORTS_MAX,
  type RowPages,
} from '../../../src/io/admin/csv.ts';
import type { OutgoingBody } from '../../../src/io/http/exchange/stream.ts';

t.test('csv: a text that a spreadsheet would run begins with an apostrophe', async (t) => {
  for (const start of ['=', '+', '-', '@', '\t', '\r'])
    t.match(csvCell(`${start}1+1`), /^"?'[=+\-@\t\r]/, JSON.stringify(start));
  t.equal(csvCell('=HYPERLINK("http://x","y")'), `"'=HYPERLINK(""http://x"",""y"")"`);
  t.equal(csvCell('a=b'), 'a=b', 'a sign within a text is no formula');
  t.equal(csvCell(-5), '-5', 'a number is one');
});

t.test('csv: quotes, commas and line ends are within quotes; null is empty', async (t) => {
  t.equal(
    csvLine(['a,b', 'say "x"', 'two\nlines', null, true, 7]),
    '"a,b","say ""x""","two\nlines",,true,7\r\n',
  );
});

async function* pagesOf(
  count: number,
  size: number,
): RowPages & AsyncGenerator<readonly (readonly CsvCell[])[]> {
  for (let at = 0; at < count; at += size)
    yield Array.from({ length: Math.min(size, count - at) }, (_, row) => [at + row]);
}

/** Collects an answer; `isFree` false: each piece fills the connection. */
function reader(isFree = true) {
  const read = { text: '', ended: false, cut: undefined as string | undefined };
  let over: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    over = resolve;
  });
  let sent: () => void = () => undefined;
  const out: OutgoingBody = {
    send(bytes) {
      read.text += String(bytes);
      if (!isFree) setImmediate(() => sent());
      return isFree;
    },
    end() {
      read.ended = true;
      over();
    },
    cut(error) {
      read.cut = error;
      over();
    },
  };
  return {
    read,
    done,
    out,
    drain(listener: () => void) {
      sent = listener;
    },
  };
}

/** Reads an export of these pages to its end. */
async function exported(pages: RowPages, isFree = true) {
  const { source } = new CsvExports().reply('x.csv', ['n'], pages);
  const { read, done, out, drain } = reader(isFree);
  drain(() => source.drained());
  source.start(out);
  await done;
  return { ...read, lines: read.text.trimEnd().split('\r\n') };
}

t.test('csv: a list over the bound ends with a line that says so, and no row more', async (t) => {
  const { lines, ended } = await exported(pagesOf(EXPORT_ROWS_MAX + 1, 1_000));
  t.equal(lines.length, EXPORT_ROWS_MAX + 2);
  t.equal(lines[0], '\uFEFFn');
  t.equal(lines[EXPORT_ROWS_MAX], String(EXPORT_ROWS_MAX - 1));
  t.equal(lines.at(-1), 'The list has more rows. An export has at most 100000.');
  t.ok(ended);
});

t.test('csv: a list of exactly the bound is whole and says nothing', async (t) => {
  t.equal((await exported(pagesOf(EXPORT_ROWS_MAX, 1_000))).lines.length, EXPORT_ROWS_MAX + 1);
});

t.test('csv: a reader that takes one piece at a time gets every row once, in order', async (t) => {
  const { lines } = await exported(pagesOf(25, 10), false);
  const numbers = Array.from({ length: 25 }, (_, row) => String(row));
  t.same(lines.slice(1), numbers);
});

t.test('csv: one export more than the bound is refused, until a reader is done or gone', async (t) => {
  const exports = new CsvExports();
  const replies = Array.from({ length: EXPORTS_MAX }, () => exports.reply('x.csv', ['n'], pagesOf(1, 1)));
  t.throws(() => exports.reply('x.csv', ['n'], pagesOf(1, 1)), /Overloaded/);
  replies[0]?.source.lost();
  replies[0]?.source.lost();
  const next = exports.reply('x.csv', ['n'], pagesOf(1, 1));
  t.throws(() => exports.reply('x.csv', ['n'], pagesOf(1, 1)), 'lost twice frees one');
  const { done, out } = reader();
  next.source.start(out);
  await done;
  t.ok(exports.reply('x.csv', ['n'], pagesOf(1, 1)), 'a finished one frees its place');
});

t.test('csv: a page that fails cuts the answer, so that a part never passes for the whole', async (t) => {
  for (const [error, name] of [
    [new GatewayError('JournalUnavailable'), 'JournalUnavailable'],
    [new Error('a bug'), 'InternalError'],
  ] as const) {
    const failing = async function* (): RowPages & AsyncGenerator<readonly (readonly CsvCell[])[]> {
      yield [[1]];
      throw error;
    };
    t.match(await exported(failing()), { ended: false, cut: name });
  }
});
