import t from 'tap';
import {
  type AccessPolicy,
  CALLER_CLASSES,
  type CallerClass,
  callerClass,
  listsTool,
  mayCallTool,
  mayReadResource,
  type ResourceAccess,
  type ToolAccess,
} from '../../src/domain/access.ts';
import { isProvenLogin, type SessionContext } from '../../src/domain/sessions.ts';

/** `McpBasicPersonalReads` true, and false. */
const OPEN: AccessPolicy = { personalReads: true };
const CLOSED: AccessPolicy = { personalReads: false };
/** McpBasic, and the consent to read, which has what it has where personal reads are open. */
const BASIC: readonly CallerClass[] = ['McpBasic', 'McpBasic:proven'];
const APPS: readonly CallerClass[] = ['McpApp', 'McpApp:proven'];

const callers = (access: ToolAccess, policy = OPEN): CallerClass[] =>
  CALLER_CLASSES.filter((one) => mayCallTool(access, one, policy));
const readers = (access: ResourceAccess, policy = OPEN): CallerClass[] =>
  CALLER_CLASSES.filter((one) => mayReadResource(access, one, policy));

t.test('tools: restricted, appScope and capabilityModule alone decide who calls', async (t) => {
  t.strictSame(callers({}), [...BASIC, 'McpVerified']);
  t.strictSame(callers({ restricted: ['McpBasic'] }), ['McpVerified']);
  t.strictSame(callers({ restricted: ['McpVerified'] }), [...BASIC]);
  t.strictSame(callers({ appScope: true }), [...BASIC, 'McpVerified', ...APPS]);
  t.strictSame(callers({ appScope: true, restricted: ['McpApp', 'McpBasic'] }), ['McpVerified']);
  t.strictSame(callers({ capabilityModule: 'chat', appScope: true }), ['Capability:chat']);
  t.strictSame(callers({ capabilityModule: 'wallet' }), ['Capability:wallet']);
});

t.test('tools: without session and code everything is listed and nothing may be called', async (t) => {
  for (const access of [{}, { restricted: ['McpBasic'] }, { capabilityModule: 'chat' }] as ToolAccess[]) {
    t.equal(listsTool(access, 'anonymous', CLOSED), true);
    t.equal(mayCallTool(access, 'anonymous', OPEN), false);
    for (const one of CALLER_CLASSES.slice(1))
      t.equal(listsTool(access, one, CLOSED), mayCallTool(access, one, CLOSED));
  }
});

t.test('resources: sessionScope opens, closes and joins the modes', async (t) => {
  t.strictSame(readers({}), [...BASIC, 'McpVerified']);
  t.strictSame(readers({ sessionScope: false }), ['anonymous', ...BASIC, 'McpVerified', ...APPS]);
  t.strictSame(readers({ sessionScope: false, restricted: ['McpBasic'] }), [
    'anonymous',
    'McpVerified',
    ...APPS,
  ]);
  t.strictSame(readers({ sessionScope: false, restricted: ['McpApp'] }), [
    'anonymous',
    ...BASIC,
    'McpVerified',
  ]);
  t.strictSame(readers({ capabilityModule: 'chat' }), ['Capability:chat']);
  t.strictSame(readers({ capabilityModule: 'wallet', sessionScope: true }), [
    ...BASIC,
    'McpVerified',
    'Capability:wallet',
  ]);
  t.strictSame(readers({ capabilityModule: 'chat', sessionScope: false }), ['Capability:chat']);
});

t.test('proof: personal rows ask for it under the closed policy, others always or never', async (t) => {
  const app = { appScope: true } as const;
  t.strictSame(callers(app, CLOSED), callers(app, OPEN), 'a row that says nothing of proof');
  const personal = { ...app, proof: 'personal' } as const;
  t.strictSame(callers(personal, OPEN), [...BASIC, 'McpVerified', ...APPS]);
  t.strictSame(callers(personal, CLOSED), ['McpBasic:proven', 'McpVerified', 'McpApp:proven']);
  t.strictSame(readers(personal, CLOSED), ['McpBasic:proven', 'McpVerified', 'McpApp:proven']);
  t.strictSame(callers({ ...app, proof: 'always' }, OPEN), ['McpVerified', 'McpApp:proven']);
  t.strictSame(
    callers({ proof: 'personal' }, CLOSED),
    ['McpBasic:proven', 'McpVerified'],
    'proof is no appScope',
  );
  t.strictSame(callers({ ...personal, restricted: ['McpApp'] }, CLOSED), ['McpBasic:proven', 'McpVerified']);
  t.strictSame(callers({ proof: 'always', capabilityModule: 'chat' }, CLOSED), ['Capability:chat']);
  t.strictSame(readers({ sessionScope: false, proof: 'always' }, CLOSED), [
    'anonymous',
    ...BASIC,
    'McpVerified',
    ...APPS,
  ]);
});

t.test('isProvenLogin: a signature proves, a public key and an application id do not', async (t) => {
  t.equal(isProvenLogin('McpBasic', true), false, 'a type of its own, whatever was sent');
  t.strictSame(
    [false, true].map((signed) => isProvenLogin('McpApp', signed)),
    [false, true],
  );
  t.equal(isProvenLogin('McpVerified', false), true, 'never opened without one');
  t.equal(isProvenLogin(null, false), true, 'a browser login answered a challenge or a code');
});

t.test('callerClass: a browser session opens nothing', async (t) => {
  const session = { kind: 'browser', loginType: null } as SessionContext;
  t.equal(callerClass({ kind: 'session', session }), 'anonymous');
  t.equal(callerClass({ kind: 'session', session: { ...session, loginType: 'McpApp' } }), 'McpApp');
  const signed = { ...session, loginType: 'McpApp', proven: true } as const;
  t.equal(callerClass({ kind: 'session', session: signed }), 'McpApp:proven');
  t.equal(callerClass({ kind: 'capability', family: 'wallet' }), 'Capability:wallet');
  t.equal(callerClass({ kind: 'anonymous' }), 'anonymous');
});
