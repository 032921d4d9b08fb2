/** Admin JSON (config.md): settings. Admin session, allowed address, a login of the last 15 minutes for changes. */
import ipaddr from 'ipaddr.js';
import { GatewayError } from '../../domain/errors.ts';
import { array, integer, nullable, object, oneOf, text, union, unknown } from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { type LiveSettings, SETTING_NAMES } from '../../domain/settings.ts';
import { MINUTE_MS } from '../../domain/time.ts';
import { type AnyRoute, defineRoute, type RouteContext } from '../http/route.ts';
import { changeSetting, viewSetting } from '../runtime-settings.ts';

/** Changes need a login at most this old (auth.md "Admin panel"). */
const FRESH_LOGIN_MS = 15 * MINUTE_MS;

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

/** Is the address in one of the ranges? Texts that are no address are in none. */
export function addressAllowed(address: string, ranges: readonly string[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return ranges.some((range) => {
    const [network, bits] = range.includes('/')
      ? ipaddr.parseCIDR(range)
      : [ipaddr.process(range), ipaddr.process(range).kind() === 'ipv4' ? 32 : 128];
    return network.kind() === parsed.kind() && parsed.match(network, bits);
  });
}

function requireAllowed(context: RouteContext<unknown, unknown, SessionContext>): void {
  if (!addressAllowed(context.client.address, context.site.adminAllow)) throw new GatewayError('Forbidden');
}

function requireFresh(context: RouteContext<unknown, unknown, SessionContext>): void {
  requireAllowed(context);
  if (context.nowMs - context.session.createdMs > FRESH_LOGIN_MS)
    throw new GatewayError('FreshLoginRequired');
}

export function createAdminRoutes(live: LiveSettings): AnyRoute[] {
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
      handle(context) {
        requireAllowed(context);
        return SETTING_NAMES.map((name) => viewSetting(live, name));
      },
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
