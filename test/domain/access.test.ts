import t from 'tap';
import {
  CALLER_CLASSES,
  type CallerClass,
  callerClass,
  listsResource,
  listsTool,
  mayCallTool,
  mayReadResource,
  type ResourceAccess,
  type ToolAccess,
} from '../../src/domain/access.ts';
import type { SessionContext } from '../../src/domain/sessions.ts';

const callers = (access: ToolAccess): CallerClass[] =>
  CALLER_CLASSES.filter((one) => mayCallTool(access, one));
const readers = (access: ResourceAccess): CallerClass[] =>
  CALLER_CLASSES.filter((one) => mayReadResource(access, one));

t.test('tools: restricted, appScope and capabilityModule alone decide who calls', async (t) => {
  t.strictSame(callers({}), ['McpBasic', 'McpVerified']);
  t.strictSame(callers({ restricted: ['McpBasic'] }), ['McpVerified']);
  t.strictSame(callers({ restricted: ['McpVerified'] }), ['McpBasic']);
  t.strictSame(callers({ appScope: true }), ['McpBasic', 'McpVerified', 'McpApp']);
  t.strictSame(callers({ appScope: true, restricted: ['McpApp', 'McpBasic'] }), ['McpVerified']);
  t.strictSame(callers({ capabilityModule: 'chat', appScope: true }), ['Capability:chat']);
  t.strictSame(callers({ capabilityModule: 'wallet' }), ['Capability:wallet']);
});

t.test('tools: without session and code everything is listed and nothing may be called', async (t) => {
  for (const access of [{}, { restricted: ['McpBasic'] }, { capabilityModule: 'chat' }] as ToolAccess[]) {
    t.equal(listsTool(access, 'nobody'), true);
    t.equal(mayCallTool(access, 'nobody'), false);
    for (const one of CALLER_CLASSES.slice(1)) t.equal(listsTool(access, one), mayCallTool(access, one));
  }
});

t.test('resources: sessionScope opens, closes and joins the modes', async (t) => {
  t.strictSame(readers({}), ['McpBasic', 'McpVerified']);
  t.strictSame(readers({ sessionScope: false }), ['nobody', 'McpBasic', 'McpVerified', 'McpApp']);
  t.strictSame(readers({ sessionScope: false, restricted: ['McpBasic'] }), [
    'nobody',
    'McpVerified',
    'McpApp',
  ]);
  t.strictSame(readers({ capabilityModule: 'chat' }), ['Capability:chat']);
  t.strictSame(readers({ capabilityModule: 'wallet', sessionScope: true }), [
    'McpBasic',
    'McpVerified',
    'Capability:wallet',
  ]);
  t.strictSame(readers({ capabilityModule: 'chat', sessionScope: false }), ['Capability:chat']);
});

t.test('resources: listed for nobody, elsewhere listing and reading agree', async (t) => {
  for (const access of [{}, { sessionScope: false }, { capabilityModule: 'chat' }] as ResourceAccess[]) {
    t.equal(listsResource(access, 'nobody'), true);
    for (const one of CALLER_CLASSES.slice(1))
      t.equal(listsResource(access, one), mayReadResource(access, one));
  }
});

t.test('callerClass: a browser session opens nothing', async (t) => {
  const session = { kind: 'browser', loginType: null } as SessionContext;
  t.equal(callerClass({ kind: 'session', session }), 'nobody');
  t.equal(callerClass({ kind: 'session', session: { ...session, loginType: 'McpApp' } }), 'McpApp');
  t.equal(callerClass({ kind: 'capability', family: 'wallet' }), 'Capability:wallet');
  t.equal(callerClass({ kind: 'nobody' }), 'nobody');
});
