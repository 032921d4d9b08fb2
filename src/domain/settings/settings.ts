/**
 * THE runtime settings (spec 8 with its ids; Gatehouse's own from 40). A row is all that a setting needs: the admin
 * panel, the configuration check and the readers walk this table.
 */
import {
  checkValue,
  type SettingCheck,
  type SettingRow,
  type SettingValue,
  type TextSetting,
} from './definitions.ts';
import { ACCOUNT_ROWS } from './rows/accounts.ts';
import { DATA_ROWS } from './rows/data.ts';
import { REQUEST_ROWS } from './rows/requests.ts';

export type { SettingValue } from './definitions.ts';

export const SETTINGS = {
  ...REQUEST_ROWS,
  ...ACCOUNT_ROWS,
  ...DATA_ROWS,
} as const satisfies Record<string, SettingRow>;

export type SettingName = keyof typeof SETTINGS;
type SettingOf<N extends SettingName> = (typeof SETTINGS)[N] extends TextSetting ? string : number;

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}

/** The live values. Readers ask at every use, so a change takes effect at once. */
export interface SettingsReader {
  /** Rises with every change. */
  readonly revision: number;
  get<N extends SettingName>(name: N): SettingOf<N>;
}

/** Validates a value from a file or an admin; returns the value that is used. */
export function checkSetting(name: SettingName, value: unknown): SettingCheck {
  return checkValue(SETTINGS[name], value);
}

/** Values in memory over the defaults: published by the settings actor, or given by tests. */
export class LiveSettings implements SettingsReader {
  readonly #values = new Map<SettingName, SettingValue>();
  revision = 0;

  constructor(first: Partial<Record<SettingName, SettingValue>> = {}) {
    for (const name of SETTING_NAMES) this.#values.set(name, first[name] ?? SETTINGS[name].default);
  }

  get<N extends SettingName>(name: N): SettingOf<N> {
    return this.#values.get(name) as SettingOf<N>;
  }

  set(name: SettingName, value: SettingValue): void {
    this.#values.set(name, value);
    this.revision += 1;
  }
}
