/** The text for models that `initialize` and `server/discover` return, at most 600 characters, or 800 for a connected host. */
import { callerClass } from '../../domain/access.ts';
import { accessOf, callerClassFor, widerThan } from '../../domain/oauth/scopes.ts';
import type { Authentication } from './authenticate.ts';
import type { CatalogView } from './catalog.ts';

const TOOLS =
  'Tools of this account, in groups by the beginning of their names: wallet_ (balance, transfers), market_ (rates, trades), payment_ and payorder_, chat_ and room_ (messages), and the account itself (sessions, keys, applications).';
const LOGIN =
  'Without a login all tools are listed and none can be called: log in with POST /auth/v1/mcp_login and send Authorization: Bearer <sessionId>; -32001 means to log in again. Addresses below /connect use OAuth.';
const CARE =
  'Amounts and ids are decimal strings; keep all their digits. Ask before a tool that moves money or ends access.';

export const INSTRUCTIONS = `${TOOLS} ${LOGIN} ${CARE} ?tools=wallet,market_* shortens the list.`;
const CONNECTED = `${TOOLS} ${CARE}`;

/** Returns the instructions for this caller: a connected host reads what a wider consent would open. */
export function instructionsFor(view: CatalogView, authentication: Authentication): string {
  if (authentication.kind !== 'session' || authentication.session.grant === undefined)
    return view.instructions ?? INSTRUCTIONS;
  const more = widerScopes(view, authentication);
  return `${view.instructions ?? CONNECTED}${more}`;
}

function widerScopes(view: CatalogView, caller: Extract<Authentication, { kind: 'session' }>): string {
  const own = callerClass(caller);
  const access = accessOf(own);
  const listed = view.toolCount(own);
  const wider = (access === undefined ? [] : widerThan(access))
    .map((scope) => ({ scope, more: view.toolCount(callerClassFor(scope)) - listed }))
    .filter(({ more }) => more > 0)
    .map(({ scope, more }) => `${scope} (${more} more)`);
  if (wider.length === 0) return '';
  return ` The person gave this connection the scope ${access}. More tools exist in a wider scope: ${wider.join(', ')}. A call of one is refused with insufficient_scope; the person is asked when the host authorizes again.`;
}
