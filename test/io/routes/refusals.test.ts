/** The refusals of every route, derived from its row of the table: none of them reaches a handler. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { NO_LIMITS } from '../../../kit/launch.ts';
import type { AnyRoute } from '../../../src/io/http/table/route.ts';
import { ALICE_ALONE, requestText, sendRaw, startHttp } from '../../support/http.ts';
import { routeTable } from '../../support/route-table.ts';

const JSON_TYPE = { 'Content-Type': 'application/json' };
const COOKIE = { Cookie: 'sid=alice' };
const READING = new Set<AnyRoute['method']>(['GET', 'HEAD']);
const NEEDS_SESSION = new Set<AnyRoute['auth']>(['session', 'either', 'admin']);
const TAKES_COOKIE = new Set<AnyRoute['auth']>([...NEEDS_SESSION, 'optional', 'eitherOptional']);

// Routes of modules are the proxy's: the module decides what a path is.
const table = routeTable().filter(({ path }) => !path.startsWith('/:module'));
const patched = new Set(table.filter(({ method }) => method === 'PATCH').map(({ path }) => path));
const pathOf = ({ path }: AnyRoute) => path.replaceAll(/:[A-Za-z]+/g, '1');

interface Row {
  readonly takes: (route: AnyRoute) => boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly expected: readonly [status: number, code: number];
}

const ROWS: Readonly<Record<string, Row>> = {
  'without a session: Session not found': {
    takes: ({ auth }) => NEEDS_SESSION.has(auth),
    headers: JSON_TYPE,
    expected: [401, 1101],
  },
  'with the cookie of an unknown session: Session not found': {
    takes: ({ auth }) => NEEDS_SESSION.has(auth),
    headers: { ...JSON_TYPE, Cookie: 'sid=unknown' },
    expected: [401, 1101],
  },
  'a change with a cookie from a foreign page: Forbidden': {
    takes: ({ auth, method }) => TAKES_COOKIE.has(auth) && !READING.has(method),
    headers: { ...JSON_TYPE, ...COOKIE, Origin: 'https://evil.example' },
    expected: [403, 1103],
  },
  'a change with a cookie that a browser calls cross-site: Forbidden': {
    takes: ({ auth, method }) => TAKES_COOKIE.has(auth) && !READING.has(method),
    headers: { ...JSON_TYPE, ...COOKIE, 'Sec-Fetch-Site': 'cross-site' },
    expected: [403, 1103],
  },
  'a foreign Host: Forbidden': {
    takes: () => true,
    headers: { ...JSON_TYPE, Host: 'evil.example' },
    expected: [403, 1103],
  },
  'a body of another type, without a cookie: Unsupported media type': {
    takes: ({ auth, body }) => !NEEDS_SESSION.has(auth) && typeof body === 'object',
    headers: { 'Content-Type': 'text/plain' },
    expected: [415, 1007],
  },
  'a method that the path has not: Method not allowed': {
    // The address of contact sync is one for any method where it is offered.
    takes: ({ path }) => !path.includes('carddav') && !patched.has(path),
    method: 'PATCH',
    headers: {},
    expected: [405, 1005],
  },
};

async function refusalOf(port: number, route: AnyRoute, { method = route.method, headers, expected }: Row) {
  const body = READING.has(route.method) && method !== 'PATCH' ? undefined : '{}';
  const answer = await sendRaw(port, requestText(method, pathOf(route), headers, body));
  // An answer to HEAD has no body to name the error.
  if (method === 'HEAD') return [answer.status, expected[1]];
  const { error } = JSON.parse(answer.body) as { error?: { code: number } };
  return [answer.status, error?.code];
}

for (const [name, row] of Object.entries(ROWS)) {
  // covers R83
  t.test(`every route: ${name}`, async (t) => {
    const { port, bugs } = closeAfter(
      t,
      startHttp({ routes: table, gate: ALICE_ALONE, settings: NO_LIMITS }),
    );
    const routes = table.filter(row.takes);
    const differing: unknown[] = [];
    for (const route of routes) {
      const seen = await refusalOf(port, route, row);
      if (seen.join() !== row.expected.join()) differing.push([`${route.method} ${route.path}`, ...seen]);
    }
    t.same(differing, []);
    t.ok(routes.length > 3, `${routes.length} routes`);
    t.same(bugs, [], 'no handler was called');
  });
}
