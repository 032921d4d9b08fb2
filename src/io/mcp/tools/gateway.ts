/**
 * Built-in tools of the gateway (spec 2.4), served by the same functions as the REST routes. McpBasic proves no key, so it sees
 * no addresses, user agents or other keys: a key that is derived from a password would allow guesses.
 */

import { APP_NAMES } from '../../../domain/apps.ts';
import { ID_EXAMPLE } from '../../../domain/examples.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import { toIso } from '../../../domain/time.ts';
import {
  type AccountCall,
  closeSessions,
  listKeys,
  listLogins,
  listSessions,
} from '../../accounts/account.ts';
import { getApp, listAppAccess, listApps, revokeAppAccess } from '../../apps/apps.ts';
import type { RouteContext } from '../../http/table/route.ts';
import type { JsonObject } from '../input-schema.ts';
import type { ToolRow } from '../tool.ts';
import { ENDS, READS } from './annotations.ts';
import { id, inputOf } from './arguments.ts';

export interface GatewayCall {
  readonly context: RouteContext;
  readonly session: SessionContext;
  /** Valid for the input schema of the row. */
  readonly arguments: JsonObject;
}

/** Handlers of the gateway by tool name and by resource URI; the value becomes `{"result": value}`. */
export interface GatewayServices {
  readonly tools: Readonly<Record<string, (call: GatewayCall) => Promise<unknown>>>;
  readonly resources: Readonly<Record<string, (context: RouteContext) => unknown>>;
}

const reading = { method: 'GET', annotations: READS } as const;
const proven = { restricted: ['McpBasic'] } as const;
const personal = { ...reading, proof: 'personal' } as const;

export const GATEWAY_TOOLS: Readonly<Record<string, ToolRow>> = {
  sessions: {
    ...reading,
    ...proven,
    endpoint: 'gateway:/auth/v1/sessions',
    title: 'Open sessions',
    description:
      'Lists the open sessions of the logged-in account, browsers and agents, with login type, key, address, user agent and times. The one you are using has `current` true.',
    inputSchema: inputOf({}),
  },
  login_log: {
    ...reading,
    ...proven,
    endpoint: 'gateway:/auth/v1/login_log',
    title: 'Login log',
    description:
      'Lists the latest logins to the account and refused attempts, newest first, with time, way of login, key, address and reason of the refusal. Use it to look for logins the person does not recognise.',
    inputSchema: inputOf({}),
  },
  user_keys: {
    ...reading,
    endpoint: 'gateway:/auth/v1/keys/user_keys',
    title: 'Keys of the account',
    description:
      'Lists the active keys of the account: type, public key, when each was added, and whether it may log in agents (`mcpAccess`), sync contacts (`cardDavAccess`) or log in to a browser (`browserLogin`). The key of this session has `current` true; a session without proof of it sees that key alone.',
    inputSchema: inputOf({}),
  },
  get_usr_apps: {
    ...personal,
    endpoint: 'gateway:/auth/v1/app/list',
    title: 'Registered applications',
    description: 'Lists the applications that the account has registered on this platform, with their ids.',
    inputSchema: inputOf({}),
  },
  get_app_info: {
    ...personal,
    endpoint: 'gateway:/auth/v1/app/info',
    title: 'One registered application',
    description:
      'Describes one application that the account has registered. Take the id from `get_usr_apps`; an application of another account is not found.',
    inputSchema: inputOf({ appId: id('Id of the application.', ID_EXAMPLE) }, ['appId']),
    formerNames: APP_NAMES,
  },
  list_app_access: {
    ...personal,
    endpoint: 'gateway:/auth/v1/app/access',
    title: 'Applications with access',
    description: 'Lists the applications that the person has allowed to act for the account, and since when.',
    inputSchema: inputOf({}),
  },
  revoke_app_access: {
    ...proven,
    method: 'POST',
    annotations: ENDS,
    endpoint: 'gateway:/auth/v1/app/revoke_access',
    title: 'Take access from an application',
    description:
      'Takes from one application the permission to act for the account and ends its sessions at once. Only the person can grant it again: ask before calling. Take the id from `list_app_access`.',
    inputSchema: inputOf({ appId: id('Id of the application.', ID_EXAMPLE) }, ['appId']),
  },
  close_sessions: {
    ...proven,
    method: 'POST',
    annotations: ENDS,
    endpoint: 'gateway:/auth/v1/close_sessions',
    title: 'End sessions',
    description:
      'Ends sessions of the account: the listed ones, or with `others` true all but this one, or, without any argument, all including this one, after which you must log in again. People and agents in those sessions are logged out at once: ask before calling.',
    inputSchema: inputOf({
      sessionIds: {
        type: 'array',
        description: 'Ids of the sessions to end, from `sessions`. Not together with `others`.',
        items: { type: 'string', pattern: '^(?:0|[1-9][0-9]{0,18})$' },
        minItems: 1,
        maxItems: 1000,
        examples: [[ID_EXAMPLE]],
      },
      others: {
        type: 'boolean',
        description: 'True ends every session but this one.',
        enum: [true],
        examples: [true],
      },
    }),
  },
};

export const GATEWAY_SERVICES: GatewayServices = {
  tools: {
    sessions: (call) => listSessions(accountCall(call)),
    login_log: (call) => listLogins(accountCall(call)),
    user_keys: (call) => listKeys(accountCall(call)),
    get_usr_apps: (call) => listApps(accountCall(call)),
    get_app_info: (call) => getApp(accountCall(call), String(call.arguments['appId'])),
    list_app_access: (call) => listAppAccess(accountCall(call)),
    revoke_app_access: (call) => revokeAppAccess(accountCall(call), String(call.arguments['appId'])),
    close_sessions: (call) => closeSessions(accountCall(call), call.arguments),
  },
  resources: {
    'gatehouse://gateway/info': ({ site, nowMs }) => ({
      project: site.project,
      version: site.version,
      utcNow: toIso(nowMs),
    }),
  },
};

function accountCall({ context, session }: GatewayCall): AccountCall {
  const { actors, settings, client, nowMs, span } = context;
  const origin = { ip: client.address, userAgent: client.userAgent };
  return { actors, settings, session, origin, nowMs, span };
}
