/** Conditions and ranges of downloads: the whole table, the three forms of a date, and 200,000 random fields each at full depth. */
import fc from 'fast-check';
import t from 'tap';
import { parseHttpDate, toHttpDate } from '../../../src/domain/files/http-dates.ts';
import {
  type ConditionalFields,
  judgeDownload,
  type Validators,
} from '../../../src/domain/files/preconditions.ts';
import { contentRange, multipartPieces, RANGES_MAX, readRanges } from '../../../src/domain/files/ranges.ts';
import { runs } from '../../support/depth.ts';
import { DOWNLOAD_TABLE, fieldsOf } from '../../support/files/download-table.ts';

const NOW_MS = Date.parse('2026-01-02T03:04:05.678Z');
const FILE: Validators = { etag: '"7-3421780262-10"', modifiedMs: NOW_MS - 86_400_000, sizeBytes: 10 };
const RUNS = 200_000;
/** A field of the longest request that the front takes is read within this, on a busy machine. */
const READ_MS_MAX = 100;

function conditional(headers: Record<string, string>): ConditionalFields {
  return {
    ifMatch: headers['if-match'],
    ifNoneMatch: headers['if-none-match'],
    ifModifiedSince: headers['if-modified-since'],
    ifUnmodifiedSince: headers['if-unmodified-since'],
    ifRange: headers['if-range'],
    range: headers['range'],
  };
}

for (const row of DOWNLOAD_TABLE) {
  // covers R72
  t.test(`download: ${row.name}: ${row.status} ${row.ranges?.join(' ') ?? ''}`, async (t) => {
    const file = row.empty === true ? { ...FILE, sizeBytes: 0 } : FILE;
    const verdict = judgeDownload(
      conditional(fieldsOf(row, file.etag, file.modifiedMs, toHttpDate)),
      file,
      NOW_MS,
    );
    t.equal(verdict.status, row.status);
    const ranges = verdict.status === 206 ? verdict.ranges : [];
    if (row.status === 206)
      t.same(
        ranges.map((range) => contentRange(range, 10)),
        row.ranges?.map((range) => `bytes ${range}/10`),
      );
  });
}

t.test('multipart: the length is that of the pieces, every part names its range and type', async (t) => {
  const { pieces, lengthBytes } = multipartPieces(
    [
      { first: 0, last: 1 },
      { first: 5, last: 8 },
    ],
    10,
    'text/plain; charset=utf-8',
    'line',
  );
  const body = pieces.map((piece) =>
    piece.kind === 'text' ? piece.text : '0123456789'.slice(piece.first, piece.first + piece.lengthBytes),
  );
  const type = 'Content-Type: text/plain; charset=utf-8\r\n';
  t.equal(
    body.join(''),
    `--line\r\n${type}Content-Range: bytes 0-1/10\r\n\r\n01\r\n--line\r\n${type}Content-Range: bytes 5-8/10\r\n\r\n5678\r\n--line--\r\n`,
  );
  t.equal(lengthBytes, body.join('').length);
});

t.test('dates: all three forms are read, and a fraction of a second does not count', async (t) => {
  const expected = Date.parse('1994-11-06T08:49:37Z');
  for (const text of [
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
  ])
    t.equal(parseHttpDate(text, NOW_MS), expected, text);
  t.equal(parseHttpDate('Monday, 02-Jan-70 00:00:00 GMT', NOW_MS), Date.parse('2070-01-02'));
  t.equal(parseHttpDate('Friday, 02-Jan-77 00:00:00 GMT', NOW_MS), Date.parse('1977-01-02'));
  t.equal(parseHttpDate(toHttpDate(NOW_MS), NOW_MS), NOW_MS - 678);
  const exact = { ...FILE, modifiedMs: NOW_MS };
  t.equal(judgeDownload({ ifModifiedSince: toHttpDate(NOW_MS) }, exact, NOW_MS).status, 304);
});

t.test('dates: what is no date is none', async (t) => {
  for (const text of [
    '',
    'junk',
    '0',
    '1994-11-06T08:49:37Z',
    'Sun, 06 Nov 1994 08:49:37 CET',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 31 Feb 1994 08:49:37 GMT',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT',
  ])
    t.equal(parseHttpDate(text, NOW_MS), undefined, text);
});

// covers R72
t.test('dates: an unknown weekday makes no date, in all three forms and all conditions', async (t) => {
  for (const text of [
    'Foo, 06 Nov 1994 08:49:37 GMT',
    'Sonntag, 06-Nov-94 08:49:37 GMT',
    'Sun, 06-Nov-94 08:49:37 GMT',
    'Xyz Nov  6 08:49:37 1994',
  ])
    t.equal(parseHttpDate(text, NOW_MS), undefined, text);
  const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
  for (const [at, day] of days.entries()) {
    const expected = Date.UTC(1994, 10, 7 + at, 8, 49, 37);
    const [short, date] = [day.slice(0, 3), String(7 + at).padStart(2, '0')];
    const texts = [
      `${short}, ${date} Nov 1994 08:49:37 GMT`,
      `${day}, ${date}-Nov-94 08:49:37 GMT`,
      `${short} Nov ${date} 08:49:37 1994`,
    ];
    t.same(
      texts.filter((text) => parseHttpDate(text, NOW_MS) !== expected),
      [],
    );
  }
  const exact = { ...FILE, modifiedMs: NOW_MS };
  const known = toHttpDate(NOW_MS);
  const unknown = known.replace(/^[A-Z][a-z]{2}/, 'Foo');
  const earlier = toHttpDate(NOW_MS - 86_400_000).replace(/^[A-Z][a-z]{2}/, 'Foo');
  t.equal(judgeDownload({ ifModifiedSince: known }, exact, NOW_MS).status, 304);
  t.equal(judgeDownload({ ifModifiedSince: unknown }, exact, NOW_MS).status, 200);
  t.equal(judgeDownload({ ifUnmodifiedSince: earlier }, exact, NOW_MS).status, 200);
  t.equal(judgeDownload({ range: 'bytes=0-4', ifRange: known }, exact, NOW_MS).status, 206);
  t.equal(judgeDownload({ range: 'bytes=0-4', ifRange: unknown }, exact, NOW_MS).status, 200);
});

/** Text out of what these fields are made of, so that random ones come near to well-formed. */
const nearly = fc
  .array(
    fc
      .constantFrom(
        'bytes=',
        '-',
        ',',
        ' ',
        '\t',
        '0',
        '5',
        '9',
        '10',
        '99999999999999999999',
        'W/',
        '"',
        '*',
      )
      .map(String),
    { maxLength: 24 },
  )
  .map((parts) => parts.join(''));
const tags = fc
  .array(fc.constantFrom(FILE.etag, `W/${FILE.etag}`, '"x"', '"a, b"', '*', ',', ' ', 'junk'), {
    maxLength: 8,
  })
  .map((parts) => parts.join(','));
const dates = fc.oneof(
  fc.integer({ min: -2_000_000_000_000, max: 4_000_000_000_000 }).map((timeMs) => toHttpDate(timeMs)),
  fc.string({ maxLength: 40 }),
);
const field = fc.oneof(nearly, tags, dates, fc.string({ maxLength: 60 }));

// covers R72 S171
t.test('ranges: random fields are read within the file, and never throw', async () => {
  fc.assert(
    fc.property(
      fc.oneof(
        nearly.map((text) => `bytes=${text}`),
        field,
      ),
      fc.constantFrom(0, 1, 10, 1_000, Number.MAX_SAFE_INTEGER),
      (range, sizeBytes) => {
        const verdict = readRanges(range, sizeBytes);
        if (verdict.kind !== 'some') return true;
        const { ranges } = verdict;
        const inside = ranges.every(({ first, last }) => first >= 0 && first <= last && last < sizeBytes);
        return inside && ranges.length >= 1 && ranges.length <= RANGES_MAX;
      },
    ),
    runs(RUNS),
  );
});

// covers R72 S171
t.test('conditions: random fields are judged, and never throw', async () => {
  const some = fc.option(field, { nil: undefined });
  const fields = fc.record({
    ifMatch: some,
    ifNoneMatch: some,
    ifModifiedSince: some,
    ifUnmodifiedSince: some,
    ifRange: some,
    range: some,
  });
  fc.assert(
    fc.property(fields, (sent) => {
      const { status } = judgeDownload(sent, FILE, NOW_MS);
      if (status === 412) return sent.ifMatch !== undefined || sent.ifUnmodifiedSince !== undefined;
      if (status === 304) return sent.ifNoneMatch !== undefined || sent.ifModifiedSince !== undefined;
      return status === 200 || sent.range !== undefined;
    }),
    runs(RUNS),
  );
});

t.test('conditions: the longest fields, made to be slow, are read at once', async (t) => {
  const long = 16_384;
  const hostile = [
    `bytes=${' '.repeat(long)}`,
    `bytes=${','.repeat(long)}`,
    `bytes=${'0-0,'.repeat(long / 4)}`,
    `bytes=${'9'.repeat(long)}-`,
    `bytes=${'0'.repeat(long)}-${'0'.repeat(long)}`,
    `bytes=0-${'\t '.repeat(long / 2)}x`,
    '"'.repeat(long),
    '"x"'.repeat(long / 3),
    '"x" ,'.repeat(long / 5),
    `${' '.repeat(long)}"`,
    'W/'.repeat(long / 2),
    `"${'x'.repeat(long)}`,
    `${', '.repeat(long / 2)}x`,
    `Sun, ${'0'.repeat(long)}`,
  ];
  for (const text of hostile) {
    const startMs = performance.now();
    for (const name of [
      'ifMatch',
      'ifNoneMatch',
      'ifModifiedSince',
      'ifUnmodifiedSince',
      'ifRange',
      'range',
    ] as const)
      judgeDownload({ [name]: text }, FILE, NOW_MS);
    t.ok(performance.now() - startMs < READ_MS_MAX, text.slice(0, 12));
  }
});
