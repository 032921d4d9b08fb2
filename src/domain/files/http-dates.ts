/**
 * Dates of HTTP (RFC 9110 5.6.7): written in the one form that is allowed today, read in all three that ever were.
 */
import { SECOND_MS } from '../time.ts';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** A day of any other name makes the text no date. Whether it fits the date is not checked. */
const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const LONG_DAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';
const CLOCK = '([0-9]{2}):([0-9]{2}):([0-9]{2})';
/** `Sun, 06 Nov 1994 08:49:37 GMT`. */
const CURRENT = new RegExp(`^${DAY}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ${CLOCK} GMT$`);
/** `Sunday, 06-Nov-94 08:49:37 GMT` (RFC 850). */
const RFC_850 = new RegExp(`^${LONG_DAY}, ([0-9]{2})-([A-Z][a-z]{2})-([0-9]{2}) ${CLOCK} GMT$`);
/** `Sun Nov  6 08:49:37 1994` (asctime of ANSI C). */
const ASCTIME = new RegExp(`^${DAY} ([A-Z][a-z]{2}) ([ 0-9][0-9]) ${CLOCK} ([0-9]{4})$`);
/** A year of two digits that would lie further ahead than this means the century before. */
const YEARS_AHEAD_MAX = 50;

/** Whole seconds: what is below them is cut. */
export function toHttpDate(timeMs: number): string {
  return new Date(Math.floor(timeMs / SECOND_MS) * SECOND_MS).toUTCString();
}

/** Unix milliseconds; undefined for what is no date of HTTP. `nowMs` gives a year of two digits its century. */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  const current = CURRENT.exec(text);
  if (current !== null) return moment(current[3], current[2], current[1], current.slice(4));
  const old = RFC_850.exec(text);
  if (old !== null) return moment(String(fullYear(Number(old[3]), nowMs)), old[2], old[1], old.slice(4));
  const asctime = ASCTIME.exec(text);
  if (asctime !== null) return moment(asctime[6], asctime[1], asctime[2], asctime.slice(3, 6));
  return undefined;
}

function fullYear(twoDigits: number, nowMs: number): number {
  const now = new Date(nowMs).getUTCFullYear();
  const year = now - (now % 100) + twoDigits;
  return year > now + YEARS_AHEAD_MAX ? year - 100 : year;
}

/** Fields in range; a day that the month does not have is no date. A leap second counts as the one before. */
function moment(
  year: string | undefined,
  monthName: string | undefined,
  day: string | undefined,
  clock: readonly string[],
): number | undefined {
  const month = MONTHS.indexOf(monthName ?? '');
  const [hours = 0, minutes = 0, seconds = 0] = clock.map(Number);
  if (month < 0 || hours > 23 || minutes > 59 || seconds > 60) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), month, Number(day));
  if (date.getUTCMonth() !== month || date.getUTCDate() !== Number(day)) return undefined;
  return date.setUTCHours(hours, minutes, Math.min(seconds, 59));
}
