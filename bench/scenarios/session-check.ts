/**
 * Requests whose whole work is to find out whose session this is: GET /auth/v1/info by a browser's cookie (what the
 * pages ask first), and resources/templates/list, whose answer is a constant, by the bearer of an MCP session. Against
 * a uWS handler that does the same work but for the session, and an empty one.
 */
import { bearersOf, checkBearers, checkCookies } from '../load/requests.ts';
import type { Subject } from '../measure/measure.ts';
import type { Bench, Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad, makeAgents } from '../subjects/gateway.ts';
import { EMPTY, EQUAL_WORK, equalWork, floor } from './floors.ts';

const COOKIE = 'session by cookie';
const BEARER = 'session by bearer';
const USERS = 64;

export const sessionCheck: Scenario = {
  name: 'session-check',
  summary:
    'a request that only checks the session, by cookie and by bearer, against a uWS handler of equal work',
  baseline: true,
  targets: [{ against: EQUAL_WORK, by: 'rate', reaches: 0.7, row: 'session check against equal work' }],
  async run(bench) {
    const subjects = await startSubjects(bench);
    return {
      comparison: await bench.compare(subjects),
      notes: [
        'By cookie: GET /auth/v1/info, which names the user. By bearer: resources/templates/list on /mcp.',
      ],
    };
  },
};

async function startSubjects(bench: Bench): Promise<Subject[]> {
  const subjects: Subject[] = [];
  for (const build of bench.builds) subjects.push(...(await sessionsOf(bench, build)));
  return subjects;
}

async function sessionsOf(bench: Bench, build: Build): Promise<Subject[]> {
  const { url, pids } = await gatewayUnderLoad(bench, undefined, { build });
  const people = await makeAgents(bench, url, bench.options.users || USERS);
  const cookies = people.map(({ cookie }) => cookie);
  const byCookie = checkCookies(url, cookies);
  const byBearer = checkBearers(url, await bearersOf(url, people));
  const subjects = [
    bench.subject(COOKIE + build.suffix, pids, () => ({ url, ...byCookie })),
    { ...bench.subject(BEARER + build.suffix, pids, () => ({ url, ...byBearer })), group: BEARER },
  ];
  const [cookie = ''] = cookies;
  if (build.suffix === '' && bench.optionalPeer('equal-work'))
    subjects.push(await equalWork(bench, url, '/auth/v1/info', cookie));
  if (build.suffix === '' && bench.optionalPeer('empty-uws'))
    subjects.push(await floor(bench, EMPTY, byCookie.requests[0] ?? '', []));
  return subjects;
}
