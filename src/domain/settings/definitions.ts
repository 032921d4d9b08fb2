/** The shape of a row of the settings registry, and short forms for the usual rows. */
import { areScopes } from '../limits/quotas.ts';
import { arePorts } from '../webhooks/target.ts';

/** A row of spec 8.1 by its first two cells, or of 8.3 by its last. docs/specification.md is printed from it. */
type SettingSpec =
  | { readonly section: '8.1'; readonly scope: string; readonly key: string }
  | { readonly section: '8.3'; readonly effect: string };

/** Under which heading people find a setting, in this order. */
export const SETTING_GROUPS = [
  'Rate limits',
  'Connections and streams',
  'Logins and keys',
  'Sessions',
  'One-time codes',
  'Files',
  'Events and webhooks',
  'Audit log',
] as const;
export type SettingGroup = (typeof SETTING_GROUPS)[number];

interface SettingBase {
  readonly id: number;
  readonly group: SettingGroup;
  /** The name for people. */
  readonly title: string;
  readonly summary: string;
  /** Specification of the setting; settings outside the contract have none. */
  readonly spec?: SettingSpec;
}
interface NumberSetting extends SettingBase {
  readonly type: 'number';
  readonly unit: string;
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** A value above `max` is accepted and used as `max` (spec 8.3: FileMaxSizeBytes). */
  readonly clamps?: true;
}
interface FlagSetting extends SettingBase {
  readonly type: 'flag';
  readonly default: 0 | 1;
}
export interface TextSetting extends SettingBase {
  readonly type: 'text';
  readonly default: string;
  readonly maxLength: number;
  /** Form of each item; items are separated by semicolons. */
  readonly items?: keyof typeof ITEMS;
}
export type SettingRow = NumberSetting | FlagSetting | TextSetting;
export type SettingValue = number | string;
export type SettingCheck = { ok: true; value: SettingValue } | { ok: false; message: string };

type Ungrouped<Row> = Row extends SettingRow ? Omit<Row, 'group'> : never;
/** Default, minimum, maximum. */
type Range = readonly [standard: number, min: number, max: number];

const ranged = <const Unit extends string>(
  unit: Unit,
  id: number,
  title: string,
  [standard, min, max]: Range,
  summary: string,
) => ({ id, type: 'number', title, unit, default: standard, min, max, summary }) as const;

export const rps = (id: number, title: string, standard: number, summary: string) =>
  ranged('requests/s', id, title, [standard, 0, 1_000_000], summary);
export const seconds = (id: number, title: string, range: Range, summary: string) =>
  ranged('s', id, title, range, summary);
export const days = (id: number, title: string, range: Range, summary: string) =>
  ranged('days', id, title, range, summary);
export const bytesPerSecond = (id: number, title: string, standard: number, summary: string) =>
  ranged('bytes/s', id, title, [standard, 0, 2 ** 40], summary);
export const count = (id: number, title: string, unit: string, range: Range, summary: string) =>
  ranged(unit, id, title, range, summary);
export const flag = (id: number, title: string, summary: string) =>
  ({ id, type: 'flag', title, default: 0, summary }) as const;

export const inGroup = <
  const Group extends SettingGroup,
  const Rows extends Readonly<Record<string, Ungrouped<SettingRow>>>,
>(
  group: Group,
  rows: Rows,
) =>
  Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, { ...row, group }])) as unknown as {
    readonly [Name in keyof Rows]: Rows[Name] & { readonly group: Group };
  };

/** `row` as one of the rate limits of spec 8.1. */
export const ofScope = <const Row extends Ungrouped<SettingRow>>(scope: string, key: string, row: Row) => ({
  ...row,
  spec: { section: '8.1', scope, key } as const,
});
/** `row` as one of the settings of files of spec 8.3. */
export const ofFiles = <const Row extends Ungrouped<SettingRow>>(effect: string, row: Row) => ({
  ...row,
  spec: { section: '8.3', effect } as const,
});

/** Forms that the items of a text may have. */
const ITEMS = {
  port: { are: arePorts, expected: 'ports from 1 to 65535' },
  scope: { are: areScopes, expected: 'scopes out of c, i, p, s and m' },
} as const;

/** Checks a value against a row: returns the value that will be used, or the expected form. */
export function checkValue(row: SettingRow, value: unknown): SettingCheck {
  if (row.type === 'text') {
    if (typeof value !== 'string' || value.length > row.maxLength)
      return { ok: false, message: `expected a text of at most ${row.maxLength} characters` };
    if (row.items === undefined || ITEMS[row.items].are(value)) return { ok: true, value };
    return { ok: false, message: `expected ${ITEMS[row.items].expected}, separated by semicolons` };
  }
  if (row.type === 'flag') {
    if (value === 0 || value === 1) return { ok: true, value };
    if (typeof value === 'boolean') return { ok: true, value: value ? 1 : 0 };
    return { ok: false, message: 'expected 0, 1, true or false' };
  }
  if (typeof value !== 'number' || !Number.isInteger(value))
    return { ok: false, message: 'expected an integer' };
  if (row.clamps && value > row.max) return { ok: true, value: row.max };
  if (value >= row.min && value <= row.max) return { ok: true, value };
  return { ok: false, message: `expected ${row.min} to ${row.max}` };
}
