/** The program against a request that hides in a chunked body (docs/decisions/0090), on both of its listeners. */
import t from 'tap';
import { expectOk, mcpLogin, newKey, request, signUp, signUpAgent } from '../../kit/agent.ts';
import { launchFor } from '../../kit/launch.ts';
import { connectRaw, requestText } from '../support/http.ts';
import { until } from '../support/until.ts';

/** One body of 1,035 bytes to a proxy; uWebSockets.js ends it after 442 bytes. */
const TRICK = `1;a\r\nA\r\n400\r\n${'x'.repeat(434)}\r\n0\r\n\r\n`;
const CHUNKED = { 'Transfer-Encoding': 'chunked', 'Content-Type': 'application/json' };

// covers S42
t.test(
  'smuggling: a request hidden behind POST /mcp or an event push leaves no log line, counter or audit record',
  async (t) => {
    const adminKey = newKey();
    const gateway = await launchFor(t, {
      configuration: { Admin: { publicKeys: [adminKey.publicKey] } },
      args: ['--sandbox'],
    });
    const admin = await signUp(gateway.url, adminKey);
    const person = await signUpAgent(gateway.url);
    const login = expectOk('mcp_login', await mcpLogin(gateway.url, person.key, Date.now()));
    const own = {
      Authorization: `Bearer ${login.json['result']?.['sessionId']}`,
      'X-Request-Id': 'hidden-request',
    };
    const attack = async (url: string, path: string, hidden: string, segments: number) => {
      const connection = connectRaw(Number(new URL(url).port));
      const visible = requestText('POST', path, CHUNKED) + TRICK;
      if (segments === 1) connection.send(visible + hidden);
      else {
        connection.send(visible);
        await connection.answer();
        connection.send(hidden);
      }
      const answers = (await connection.ended()).match(/HTTP\/1\.1 /g)?.length ?? 0;
      t.ok(answers <= 2 - segments, `${path}, ${segments} segments: one answer at most`);
    };
    const call = requestText('GET', '/wallet/v1/hidden', own);
    const page = requestText('GET', '/metrics', own);
    for (const segments of [1, 2]) {
      await attack(gateway.url, '/mcp', call, segments);
      await attack(gateway.internal, '/internal/v1/events', page, segments);
    }
    const { text: metrics } = await request(`${gateway.internal}/metrics`);
    t.match(metrics, /route="\/mcp"/, 'the visible requests are counted');
    t.notMatch(metrics, /route="\/:module/, 'the hidden requests are not counted');
    const headers = { Cookie: admin.cookie };
    const audit = async () =>
      (await request(`${gateway.url}/ProxyAdmin/api/audit?limit=1000`, { headers })).text;
    t.notMatch(gateway.output().stderr, 'hidden-request', 'nor logged');
    await request(`${gateway.url}/wallet/v1/hidden`, { headers: own });
    await gateway.said(/hidden-request/);
    // Audit records of reads are written with the next commit.
    let records = '';
    await until(async () => {
      records = await audit();
      return records.includes('rest.call');
    });
    t.equal(records.split('rest.call').length - 1, 1, 'only the direct request is recorded, once');
  },
);
