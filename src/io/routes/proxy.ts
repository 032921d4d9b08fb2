/** The reverse proxy of ordinary REST calls: `/{module}/v{n}/…` goes to the module of that name (docs/modules.md). */
import { ASKED_METHODS } from '../../domain/config/configuration.ts';
import { GatewayError } from '../../domain/errors.ts';
import { text } from '../../domain/schema.ts';
import type { RouteDocs } from '../http/openapi/route-docs.ts';
import { type AnyRoute, defineRoute } from '../http/table/route.ts';
import { auditUnreached, forward } from '../proxy/forward.ts';
import {
  callerOf,
  isAskedFor,
  isProxied,
  isPublicPath,
  type ReachDeps,
  syncsContacts,
} from '../proxy/reach.ts';
import { asksForSocket, type UpgradeDeps, upgrade } from '../proxy/upgrade.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

export interface ProxyDeps extends UpgradeDeps, ReachDeps {}

/** One route per method. The router serves HEAD by the GET route. */
export function createProxyRoutes(deps: ProxyDeps): AnyRoute[] {
  const rules = [...deps.moduleRules.values()];
  const asked = ASKED_METHODS.filter((method) => rules.some(({ methods }) => methods?.includes(method)));
  return [...METHODS, ...asked].map((method) =>
    defineRoute({
      method,
      path: '/:module/:version/:path',
      // Paths of modules may hold secrets, such as the token of a login link.
      secretPath: true,
      summary: 'A call to a backend module; the path is all that follows',
      description: DESCRIPTION,
      docs: docsOf(method),
      bytes: { 200: 'What the module answered, its other statuses too, as it came' },
      group: 'modules',
      auth: 'either',
      body: 'stream',
      errors: [
        'NotFound',
        'FieldTooLong',
        'TrailersNotSupported',
        'UpgradeRequired',
        'ModuleFailed',
        'ModuleTimedOut',
        'ModuleUnavailable',
        // Error of the audit record, which is on disk before the module is called.
        ...(method === 'GET' ? [] : (['StorageFull'] as const)),
      ],
      serves: (rawPath) => isProxied(deps, rawPath),
      ...(asked.some((each) => each === method) && {
        asksFor: (rawPath: string) => isAskedFor(deps, rawPath, method),
      }),
      takesBasic: (rawPath) => syncsContacts(deps, rawPath),
      isPublic: (rawPath) => isPublicPath(deps, rawPath),
      refusal(error, context) {
        if (error.row === 'SessionNotFound' || error.row === 'Forbidden') auditUnreached(deps, context);
        return undefined;
      },
      handle(context) {
        const caller = callerOf(deps, context);
        if (caller === undefined) throw new GatewayError('Forbidden');
        return asksForSocket(context) ? upgrade(deps, context, caller) : forward(deps, context, caller);
      },
    }),
  );
}

/** All modules share it; each module describes its own API. */
const DESCRIPTION =
  'Goes to the module with the account of the session, through limits, audit and breaker. `path` may have several segments, and the query goes along. Paths that are public in the configuration need no session. McpBasic and McpApp reach what their tools reach.';

function docsOf(method: string): RouteDocs {
  return {
    body:
      method === 'GET'
        ? null
        : { type: '*/*', optional: true, description: 'Bytes of any type, passed on as they come' },
    params: {
      module: text({
        description: 'Name of the module',
        pattern: '^[a-z][a-z0-9-]{0,31}$',
        form: 'a name',
        examples: ['wallet'],
      }),
      version: text({
        description: '`v` and a number',
        pattern: '^v[1-9][0-9]{0,3}$',
        form: 'a version',
        examples: ['v1'],
      }),
      path: text({
        description: 'The rest of the path; slashes stay as they are',
        examples: ['balance/get'],
      }),
    },
  };
}
