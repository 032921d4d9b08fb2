/** Connects the settings actor, which stores the changes of admins, with the live values. */

import { SETTINGS_ID, type SettingChange, settings } from '../../actors/admin/settings.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { RunningSystem } from '../../actors/runtime/system.ts';
import type { SettingGroup, SettingRow } from '../../domain/settings/definitions.ts';
import {
  type LiveSettings,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  type SettingValue,
} from '../../domain/settings/settings.ts';
import { toIso } from '../../domain/time.ts';
import { nicknameOf } from '../accounts/nicknames.ts';

interface SettingView {
  readonly id: number;
  readonly name: SettingName;
  readonly title: string;
  readonly group: SettingGroup;
  readonly type: SettingRow['type'];
  readonly unit: string;
  readonly default: SettingValue;
  readonly min: number | null;
  readonly max: number | null;
  readonly value: SettingValue;
  readonly summary: string;
  /** The last change by an admin; null without one, or of a version that did not remember it. */
  readonly changed: {
    readonly userId: string;
    readonly nickname: string | null;
    readonly utc: string;
  } | null;
}

/** The part of the actors that this node reads. */
type Stored = Pick<RunningSystem, 'stored'> & Pick<ActorSystem, 'exists' | 'now'>;

export interface SettingsAtNode {
  readonly settings: LiveSettings;
  readonly stored: Stored;
  /** Reads what is stored into `settings`. */
  readonly reload: () => void;
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
 * Changes one setting: durable first, then effective at once. `reload` is of `settings`: answers of two nodes may come in
 * another order than their changes.
 * Fails with `InvalidInput` for an unknown name or a value out of bounds.
 */
export async function changeSetting(
  actors: Pick<ActorSystem, 'ask'>,
  node: SettingsAtNode,
  change: { name: string; value: unknown; by: string; address: string },
): Promise<SettingView> {
  const { name } = await actors.ask(settings, SETTINGS_ID, { type: 'change', ...change });
  node.reload();
  return viewSetting(node, name, changesOf(node));
}

/** All settings in the order of their table. */
export function viewSettings(node: SettingsAtNode): SettingView[] {
  const changes = changesOf(node);
  return SETTING_NAMES.map((name) => viewSetting(node, name, changes));
}

type Changes = Partial<Record<SettingName, SettingChange>>;

const changesOf = ({ stored }: SettingsAtNode): Changes =>
  stored.stored(settings, SETTINGS_ID, { type: 'changes' });

function viewSetting(
  { settings: live, stored }: SettingsAtNode,
  name: SettingName,
  changes: Changes,
): SettingView {
  const row: SettingRow = SETTINGS[name];
  const last = changes[name];
  return {
    id: row.id,
    name,
    title: row.title,
    group: row.group,
    type: row.type,
    unit: row.type === 'number' ? row.unit : '',
    default: row.default,
    min: row.type === 'number' ? row.min : null,
    max: row.type === 'number' ? row.max : null,
    value: live.get(name),
    summary: row.summary,
    changed:
      last === undefined
        ? null
        : { userId: last.by, nickname: nicknameOf(stored, last.by), utc: toIso(last.utcMs) },
  };
}
