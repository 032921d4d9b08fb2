/**
 * The range and precondition table of the file transport, row by row, for a file of the ten bytes `0123456789`. `E` and
 * `L` stand for the file's entity-tag and date. Asked of the pure function and of the real front alike.
 */

export interface TableRow {
  readonly name: string;
  /** Lower-case names. `{E}`, `{L}`, `{L+1}` and `{L-1}` are filled in. */
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
  /** Range of each part that comes, in order; `*` for a 416. */
  readonly ranges?: readonly string[];
  /** The empty file instead of the ten bytes. */
  readonly empty?: true;
}

export const TEN_BYTES = '0123456789';

const range = (spec: string, status: number, ...ranges: string[]): TableRow => ({
  name: `Range ${spec}`,
  headers: { range: spec },
  status,
  ranges,
});
const condition = (headers: Record<string, string>, status: number, ...ranges: string[]): TableRow => ({
  name: Object.entries(headers)
    .map(([name, value]) => `${name} ${value}`)
    .join(', '),
  headers,
  status,
  ranges,
});
const each = (specs: readonly string[], status: number): TableRow[] =>
  specs.map((spec) => range(spec, status));

export const DOWNLOAD_TABLE: readonly TableRow[] = [
  { name: 'nothing asked', headers: {}, status: 200 },
  range('bytes=0-4', 206, '0-4'),
  range('bytes=2-', 206, '2-9'),
  range('bytes=-5', 206, '5-9'),
  range('bytes=3-7', 206, '3-7'),
  range('bytes=0-0', 206, '0-0'),
  range('bytes=9-', 206, '9-9'),
  range('bytes=5-1000', 206, '5-9'),
  range('bytes=0-10', 206, '0-9'),
  range('bytes=9-10', 206, '9-9'),
  range('bytes=-15', 206, '0-9'),
  range('bytes=10-', 416, '*'),
  range('bytes=10-11', 416, '*'),
  range('bytes=100-1000', 416, '*'),
  range('bytes=-0', 416, '*'),
  range('bytes=99999999999999999999-', 416, '*'),
  range('bytes=0-99999999999999999999', 206, '0-9'),
  ...each(['bytes=', 'bytes= , ,', 'items=0-5', 'foo'], 200),
  ...each(
    ['bytes=7', 'bytes=--6', 'bytes=A-', 'bytes=0x1-0x2', 'bytes=0-3 5-6', 'bytes=5-4', 'bytes=-', 'bytes'],
    200,
  ),
  ...each(['bytes=0-1,5-4', 'bytes=0-1;5-6', 'bytes:0-4', 'bytes=1e0-2', 'bytes=+1-2', 'bytes=0 - 4'], 200),
  range('BYTES=0-4', 206, '0-4'),
  range('bytes=,0-4 ,', 206, '0-4'),
  range('bytes=00000000000000000000000000000003-0004', 206, '3-4'),
  range('bytes=99999999999999999998-99999999999999999997', 200),
  range('bytes=99999999999999999997-99999999999999999998', 416, '*'),
  range('bytes=15-,0-5', 206, '0-5'),
  range('bytes=0-0,-2', 206, '0-0', '8-9'),
  range('bytes=0-1,5-8', 206, '0-1', '5-8'),
  range('bytes=5-8,0-1', 206, '5-8', '0-1'),
  range('bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7', 206, '0-0', '1-1', '2-2', '3-3', '4-4', '5-5', '6-6', '7-7'),
  range('bytes=0-0,1-1,2-2,3-3,4-4,5-5,6-6,7-7,8-8', 200),
  range('bytes=0-8,0-1', 200),
  range('bytes=0-9,0-0', 200),
  ...['bytes=0-4', 'bytes=-5', 'bytes=-0', 'bytes=10-', 'bytes=0-0,-2'].map(
    (spec): TableRow => ({
      ...range(spec, 200),
      name: `the empty file, Range ${spec}`,
      empty: true,
    }),
  ),
  condition({ 'if-none-match': '{E}' }, 304),
  condition({ 'if-none-match': 'W/{E}' }, 304),
  condition({ 'if-none-match': '"x", W/{E}' }, 304),
  condition({ 'if-none-match': '"with,comma", {E}' }, 304),
  condition({ 'if-none-match': '*' }, 304),
  condition({ 'if-none-match': '{E}', range: 'bytes=0-4' }, 304),
  condition({ 'if-none-match': '*', range: 'bytes=100-' }, 304),
  condition({ 'if-none-match': '"x"' }, 200),
  condition({ 'if-none-match': '"x"', range: 'bytes=0-4' }, 206, '0-4'),
  condition({ 'if-none-match': '"x"', 'if-modified-since': '{L}' }, 200),
  condition({ 'if-none-match': '{E} junk' }, 200),
  condition({ 'if-match': '{E}' }, 200),
  condition({ 'if-match': '*' }, 200),
  condition({ 'if-match': '"Z", {E}' }, 200),
  condition({ 'if-match': '{E}', range: 'bytes=0-4' }, 206, '0-4'),
  condition({ 'if-match': '*', range: 'bytes=0-4' }, 206, '0-4'),
  condition({ 'if-match': '"Z", {E}', range: 'bytes=100-' }, 416, '*'),
  condition({ 'if-match': '"x"' }, 412),
  condition({ 'if-match': 'W/{E}' }, 412),
  condition({ 'if-match': '"x"', range: 'bytes=0-4' }, 412),
  condition({ 'if-match': 'junk' }, 412),
  condition({ 'if-match': '{E} junk' }, 412),
  condition({ 'if-match': '"x"', 'if-none-match': '{E}' }, 412),
  condition({ 'if-match': '{E}', 'if-none-match': '{E}' }, 304),
  condition({ 'if-match': '{E}', 'if-unmodified-since': '{L-1}' }, 200),
  condition({ 'if-modified-since': '{L}' }, 304),
  condition({ 'if-modified-since': '{L+1}' }, 304),
  condition({ 'if-modified-since': '{L-1}' }, 200),
  condition({ 'if-modified-since': 'junk' }, 200),
  condition({ 'if-modified-since': '{L}', range: 'bytes=0-4' }, 304),
  condition({ 'if-unmodified-since': '{L}' }, 200),
  condition({ 'if-unmodified-since': '{L-1}' }, 412),
  condition({ 'if-unmodified-since': 'junk' }, 200),
  condition({ range: 'bytes=0-4', 'if-range': '{E}' }, 206, '0-4'),
  condition({ range: 'bytes=0-4', 'if-range': 'W/{E}' }, 200),
  condition({ range: 'bytes=0-4', 'if-range': '"B"' }, 200),
  condition({ range: 'bytes=0-4', 'if-range': '{L}' }, 206, '0-4'),
  condition({ range: 'bytes=0-4', 'if-range': '{L+1}' }, 200),
  condition({ range: 'bytes=0-4', 'if-range': '{L-1}' }, 200),
  condition({ range: 'bytes=0-4', 'if-range': 'junk' }, 200),
  condition({ range: 'bytes=100-', 'if-range': '"B"' }, 200),
  condition({ range: 'bytes=100-', 'if-range': '{E}' }, 416, '*'),
];

/** The row's fields for a file of that tag and date. `dateOf` writes a date of HTTP. */
export function fieldsOf(
  row: TableRow,
  etag: string,
  modifiedMs: number,
  dateOf: (timeMs: number) => string,
): Record<string, string> {
  const filled = Object.entries(row.headers).map(([name, value]) => [
    name,
    value
      .replaceAll('{E}', etag)
      .replaceAll('{L}', dateOf(modifiedMs))
      .replaceAll('{L+1}', dateOf(modifiedMs + 1_000))
      .replaceAll('{L-1}', dateOf(modifiedMs - 1_000)),
  ]);
  return Object.fromEntries(filled) as Record<string, string>;
}
