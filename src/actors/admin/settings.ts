/** The runtime settings that an admin has changed. They win over the file and survive restarts; one actor in all. */
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

interface SettingsState {
  readonly values: Partial<Record<SettingName, SettingValue>>;
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
}

interface SettingsQuery {
  readonly type: 'values';
}

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
  { readonly values: SettingsState['values'] }
>;

export const settings = defineActor<SettingsState, SettingsProtocol, SettingChanged>({
  kind: 'settings',
  version: 1,
  gated: true,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: () => ({ values: {} }),
  decide: { change },
  evolve: (state, event) => ({ values: { ...state.values, [event.name]: event.value } }),
  query: { values: ({ values }) => values },
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
    events: [{ type: 'changed', name: command.name, value: check.value }],
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
