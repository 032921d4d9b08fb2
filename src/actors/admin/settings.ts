/**
 * The runtime settings that an admin has changed, with who did last. They win over the file and survive restarts; one actor
 * in all, of which every node of a cluster has a copy.
 */
import {
  checkSetting,
  isSettingName,
  type SettingName,
  type SettingValue,
} from '../../domain/settings/settings.ts';
import { defineActor, type Outcome, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import type { Protocol } from '../runtime/protocol.ts';

/** The only instance. */
export const SETTINGS_ID = 'all';

/** The last change of a setting. */
export interface SettingChange {
  /** User id of the admin. */
  readonly by: string;
  readonly utcMs: number;
}

interface SettingsState {
  readonly values: Partial<Record<SettingName, SettingValue>>;
  /** Absent in snapshots of versions that did not remember it. */
  readonly changes?: Partial<Record<SettingName, SettingChange>>;
}

interface ChangeSetting {
  readonly type: 'change';
  readonly name: string;
  readonly value: unknown;
  /** User id of the admin, and the address the change came from: both go to the audit log. */
  readonly by: string;
  readonly address: string;
}

interface SettingChanged {
  readonly type: 'changed';
  readonly name: SettingName;
  readonly value: SettingValue;
  /** Absent in rows of versions that did not remember it. */
  readonly change?: SettingChange;
}

type SettingsQuery = { readonly type: 'values' } | { readonly type: 'changes' };

/** The reply to `change`. */
interface ChangedSetting {
  readonly name: SettingName;
  readonly value: SettingValue;
  readonly before: SettingValue;
}

type SettingsProtocol = Protocol<
  ChangeSetting,
  { readonly change: ChangedSetting },
  SettingsQuery,
  {
    readonly values: SettingsState['values'];
    readonly changes: NonNullable<SettingsState['changes']>;
  }
>;

export const settings = defineActor<SettingsState, SettingsProtocol, SettingChanged>({
  kind: 'settings',
  version: 1,
  gated: true,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: () => ({ values: {} }),
  decide: { change },
  evolve: ({ values, changes }, { name, value, change: last }) => ({
    values: { ...values, [name]: value },
    changes: { ...changes, [name]: last },
  }),
  query: { values: ({ values }) => values, changes: ({ changes = {} }) => changes },
});

function change(
  _state: SettingsState,
  command: ChangeSetting,
  turn: Turn,
): Outcome<SettingChanged, ChangedSetting> | Refusal {
  if (!isSettingName(command.name)) return refuse('InvalidInput', 'name: unknown setting');
  const check = checkSetting(command.name, command.value);
  if (!check.ok) return refuse('InvalidInput', `value: ${check.message}`);
  const before = turn.settings.get(command.name);
  return {
    events: [
      {
        type: 'changed',
        name: command.name,
        value: check.value,
        change: { by: command.by, utcMs: turn.nowMs },
      },
    ],
    audit: [
      {
        utcMs: turn.nowMs,
        event: 'settingChanged',
        userId: command.by,
        fields: { name: command.name, before, after: check.value, address: command.address },
      },
    ],
    reply: { name: command.name, value: check.value, before },
  };
}
