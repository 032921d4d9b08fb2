/** Connects the settings actor, which stores the changes of admins, with the live values. */

import { SETTINGS_ID, settings } from '../../actors/admin/settings.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { RunningSystem } from '../../actors/runtime/system.ts';
import type { SettingRow } from '../../domain/settings/definitions.ts';
import {
  type LiveSettings,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type SettingValue,
} from '../../domain/settings/settings.ts';

/** A setting as admins see it. */
interface SettingView {
  readonly id: number;
  readonly name: SettingName;
  readonly type: SettingRow['type'];
  readonly unit: string;
  readonly default: SettingValue;
  readonly min: number | null;
  readonly max: number | null;
  readonly value: SettingValue;
  readonly summary: string;
}

/**
 * Returns a function that applies the stored changes of admins over the values of the configuration file: at the start,
 * and after every change, of whatever process. An unchanged value keeps the revision.
 */
export function settingsReload(local: Pick<RunningSystem, 'stored'>, live: LiveSettings): () => void {
  return () => {
    const values = local.stored(settings, SETTINGS_ID, { type: 'values' });
    for (const name of SETTING_NAMES) {
      const value = values[name];
      if (value !== undefined && value !== live.get(name)) live.set(name, value);
    }
  };
}

/**
 * Changes one setting: durable first, then effective at once. `reload` is of `live`: answers of two nodes may come in another
 * order than their changes.
 * Fails with `InvalidInput` for an unknown name or a value out of bounds.
 */
export async function changeSetting(
  actors: ActorSystem,
  { settings: live, reload }: { readonly settings: LiveSettings; readonly reload: () => void },
  change: { name: string; value: unknown; by: string; address: string },
): Promise<SettingView> {
  const accepted = await actors.ask(settings, SETTINGS_ID, {
    type: 'change',
    ...change,
  });
  reload();
  return viewSetting(live, accepted.name);
}

export function viewSetting(live: LiveSettings, name: SettingName): SettingView {
  const row: SettingRow = SETTINGS[name];
  return {
    id: row.id,
    name,
    type: row.type,
    unit: row.type === 'number' ? row.unit : '',
    default: row.default,
    min: row.type === 'number' ? row.min : null,
    max: row.type === 'number' ? row.max : null,
    value: live.get(name),
    summary: row.summary,
  };
}
