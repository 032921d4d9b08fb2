/** Admin JSON of the runtime settings (spec 8). */
import { array, integer, nullable, object, oneOf, text, union, unknown } from '../../domain/schema.ts';
import { type LiveSettings, SETTING_NAMES } from '../../domain/settings.ts';
import { requireFresh } from '../admin-door.ts';
import { type AnyRoute, defineRoute } from '../http/route.ts';
import { changeSetting, viewSetting } from '../runtime-settings.ts';

const settingValue = union([integer(), text()]);
const settingView = object({
  id: integer(),
  name: text(),
  type: oneOf(['number', 'flag', 'text']),
  unit: text(),
  default: settingValue,
  min: nullable(integer()),
  max: nullable(integer()),
  value: settingValue,
  summary: text(),
});

export function createAdminSettingRoutes(live: LiveSettings): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/ProxyAdmin/api/settings',
      summary: 'All runtime settings with their bounds and values',
      group: 'admin',
      auth: 'admin',
      limits: [],
      result: array(settingView),
      errors: ['SessionNotFound', 'Forbidden'],
      handle: () => SETTING_NAMES.map((name) => viewSetting(live, name)),
    }),
    defineRoute({
      method: 'POST',
      path: '/ProxyAdmin/api/settings',
      summary: 'Change one runtime setting, effective at once',
      group: 'admin',
      auth: 'admin',
      limits: [],
      body: object({ name: text({ maxLength: 64 }), value: unknown() }),
      result: settingView,
      errors: ['InvalidInput', 'SessionNotFound', 'Forbidden', 'FreshLoginRequired'],
      handle(context) {
        requireFresh(context);
        const { body, session, client, actors } = context;
        const change = { name: body.name, value: body.value, by: session.userId, address: client.address };
        return changeSetting(actors, live, change);
      },
    }),
  ];
}
