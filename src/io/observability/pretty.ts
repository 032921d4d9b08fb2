/**
 * Log lines for people (`Log.format` "pretty") and the lines that `Log.level` leaves. Both work on finished JSON lines, so
 * that the table of lines stays the one source of what they say.
 */
export interface LogStyle {
  readonly format: 'json' | 'pretty';
  readonly level: 'info' | 'warn' | 'error';
}

interface ParsedLine {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly err?: { readonly stack?: string; readonly message?: string };
  readonly [field: string]: unknown;
}

const LEVELS = ['info', 'warn', 'error'] as const;
const LEVEL_LENGTH = 5;
/** A text that needs no quotes between blanks: no blank, quote, backslash or `=`. */
const BARE = /^[\x21\x23-\x3c\x3e-\x5b\x5d-\x7e]+$/;
/**
 * Characters that `JSON.stringify` leaves alone and a terminal or another parser may not: DEL, C1, everything beyond
 * ASCII.
 */
const BEYOND_ASCII = /[\x7f-\uffff]/g;

/** ASCII alone; `json` has its control characters escaped already. */
export function escapedToAscii(json: string): string {
  return json.replace(
    BEYOND_ASCII,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** `<time> <LEVEL> <message> <field>=<value> …` with its line feed; a stack follows on lines of its own. */
export function prettyLine(line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as ParsedLine;
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`);
  const stack = (err?.stack ?? err?.message ?? '').split('\n').filter((each) => each !== '');
  const head = [time, level.toUpperCase().padEnd(LEVEL_LENGTH), msg, ...shown].join(' ');
  return [head, ...stack.map((each) => `    ${quoted(each).slice(1, -1)}`), ''].join('\n');
}

function valueText(value: unknown): string {
  return typeof value === 'string' && BARE.test(value) ? value : quoted(value);
}

function quoted(value: unknown): string {
  return escapedToAscii(JSON.stringify(value));
}

/** Leaves out and rewrites lines on their way to `sink`; the sink itself where every line passes as it is. */
export function styledSink<Sink extends { write(line: string): void }>(
  sink: Sink,
  { format, level }: LogStyle,
): Sink {
  if (format === 'json' && level === 'info') return sink;
  const beginnings = LEVELS.slice(LEVELS.indexOf(level)).map((each) => `{"level":"${each}"`);
  return {
    ...sink,
    write(line: string) {
      if (beginnings.some((beginning) => line.startsWith(beginning)))
        sink.write(format === 'pretty' ? prettyLine(line) : line);
    },
  };
}

/** Gives each line that is written to `follow` too. */
export function followedSink<Sink extends { write(line: string): void }>(
  sink: Sink,
  follow: (line: string) => void,
): Sink {
  return {
    ...sink,
    write(line: string) {
      sink.write(line);
      follow(line);
    },
  };
}
