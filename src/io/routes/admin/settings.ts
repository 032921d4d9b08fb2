/** Admin JSON of the runtime settings (spec 8) and of the bounds that callers share. */
import type { SharedBounds } from '../../../domain/limits/shared-bounds.ts';
import {
  array,
  idText,
  integer,
  named,
  nullable,
  object,
  oneOf,
  text,
  union,
  unknown,
  utcText,
} from '../../../domain/schema.ts';
import { SETTING_GROUPS } from '../../../domain/settings/definitions.ts';
import { nicknameSchema } from '../../accounts/nicknames.ts';
import { requireFresh } from '../../admin/pagination.ts';
import { changeSetting, type SettingsAtNode, viewSettings } from '../../admin/settings.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';

const settingValue = union([integer(), text()], { examples: [2] });
const settingView = named(
  'Setting',
  object({
    id: integer(),
    name: text({ examples: ['ApiRPSLimit'] }),
    title: text({ examples: ['Requests of a connection'] }),
    group: oneOf(SETTING_GROUPS),
    type: oneOf(['number', 'flag', 'text']),
    unit: text({ examples: ['requests per second'] }),
    default: settingValue,
    min: nullable(integer()),
    max: nullable(integer()),
    value: settingValue,
    summary: text({ examples: ['Requests per second of one connection'] }),
    changed: nullable(object({ userId: idText(), nickname: nicknameSchema, utc: utcText() })),
  }),
);

const boundView = named(
  'Bound',
  object({
    name: text({ examples: ['uploadSlots'] }),
    unit: text({ examples: ['uploads'] }),
    summary: text({ examples: ['Buffered uploads that are open'] }),
    maximum: integer(),
    session: nullable(integer()),
    user: nullable(integer()),
    network: integer(),
    held: integer(),
    refused: object({ maximum: integer(), session: integer(), user: integer(), network: integer() }),
  }),
);

export interface AdminSettingDeps extends SettingsAtNode {
  readonly bounds: Pick<SharedBounds, 'report'>;
}

export function createAdminSettingRoutes(deps: AdminSettingDeps): AnyRoute[] {
  const { bounds } = deps;
  return [
    adminRoute({
      method: 'GET',
      path: '/ProxyAdmin/api/settings',
      summary: 'All runtime settings with their bounds and values',
      description:
        'In the order of their groups. `type` flag is 0 or 1. `min` and `max` are null for texts. `changed` is the last change by an admin.',
      result: array(settingView),
      handle: () => viewSettings(deps),
    }),
    adminRoute({
      method: 'GET',
      path: '/ProxyAdmin/api/bounds',
      summary:
        'Bounds that callers share: how much in all and for one caller, what is held now and what was refused',
      description:
        'A bound is held for a session, a user and a network at once; null means that it has no such share.',
      result: array(boundView),
      handle: () =>
        bounds.report().map((row) => ({ ...row, session: row.session ?? null, user: row.user ?? null })),
    }),
    adminRoute({
      method: 'POST',
      path: '/ProxyAdmin/api/settings',
      summary: 'Change one runtime setting, effective at once',
      description:
        'A value outside the bounds of the setting is refused. The change is on disk before the answer. Needs a recent login.',
      body: object({
        name: text({ maxLength: 64, examples: ['ApiRPSLimit'] }),
        value: unknown({ examples: [2] }),
      }),
      result: settingView,
      errors: ['FreshLoginRequired'],
      handle(context) {
        requireFresh(context);
        const { body, session, client, actors } = context;
        const change = { name: body.name, value: body.value, by: session.userId, address: client.address };
        return changeSetting(actors, deps, change);
      },
    }),
  ];
}
