/**
 * Canaries: secrets of every kind are sent to the program, in valid and in invalid requests, and then appear in no
 * log line, refusal, health page or metric. The log is one JSON object a line.
 */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { type Answer, bearerOf, expectOk, request, signUpAgent } from '../../kit/agent.ts';
import { sendHttp } from '../../kit/http.ts';
import { HIGH_LIMITS, launch, type RunningGateway } from '../../kit/launch.ts';

/** Has the form of a module's code and is not valid. */
const canary = (word: string) => `canary-${word}-${randomBytes(9).toString('base64url')}`;

/** `fetch` refuses to send control characters in the user agent. */
const sendAs = async (url: string, agent: string) =>
  (await sendHttp(url, { headers: { 'user-agent': agent } })).status;

async function pagesOf(gateway: RunningGateway): Promise<string> {
  const addresses = [`${gateway.url}/health`, `${gateway.internal}/health`, `${gateway.internal}/metrics`];
  const pages = await Promise.all(addresses.map((address) => request(address)));
  return pages.map(({ text }) => text).join('\n');
}

async function madeFor(url: string, cookie: string): Promise<{ apiKey: string; fileCode: string }> {
  const headers = { Cookie: cookie };
  const body = { name: 'Shop', url: 'https://shop.example' };
  const app = await request(`${url}/auth/v1/app/upsert_usr_app`, { headers, body });
  const draft = await request(`${url}/auth/v2/file/create_draft?fileName=a.bin&fileSize=1`, {
    method: 'POST',
    headers,
  });
  const [, fileCode = ''] = String(expectOk('create_draft', draft).json['result']).split(':');
  return { apiKey: String(expectOk('upsert_usr_app', app).json['result']?.['apiKey']), fileCode };
}

type Options = Parameters<typeof request>[1];

/** Codes in paths: of routes that expect them, of routes that expect an id, of modules, and of unknown routes. */
function secretPaths(
  { fileCode, path, bearer }: Readonly<Record<'fileCode' | 'path' | 'bearer', string>>,
  cookie: string,
): [path: string, options?: Options][] {
  const own = { Authorization: `Bearer ${bearer}` };
  return [
    ...['GET', 'HEAD', 'PUT', 'DELETE'].map((method): [string, Options] => [
      `/auth/v2/file/${fileCode}`,
      { method },
    ]),
    [`/auth/v2/file/${fileCode}/`],
    [`/auth/v1/file/${fileCode}`],
    [`/auth/v1/file/${fileCode}`, { headers: { Cookie: cookie } }],
    ...['POST', 'HEAD', 'PATCH', 'DELETE', 'PUT'].map((method): [string, Options] => [
      `/auth/v2/file/stream_upload/${fileCode}`,
      { method, headers: { Cookie: cookie } },
    ]),
    [`/wallet/v1/${path}`],
    ...['GET', 'POST', 'DELETE'].map((method): [string, Options] => [
      `/wallet/v1/${path}/x/${path}`,
      { method, headers: own },
    ]),
    ...['', '/file', '/auth/v2', '/nomodule/v1/file'].map((before): [string] => [`${before}/${fileCode}`]),
  ];
}

const namesIn = (text: string, secrets: object): string[] =>
  Object.entries(secrets)
    .filter(([, value]) => text.includes(value))
    .map(([name]) => name);

// covers S33
t.test('canaries: no secret in the log, in refusals, in /health or in /metrics', async (t) => {
  const gateway = await launch({ configuration: { Settings: HIGH_LIMITS }, args: ['--sandbox'] });
  const refusals: Answer[] = [];
  const asked = async (path: string, options: Options = {}) => {
    const answer = await request(`${gateway.url}${path}`, options);
    refusals.push(answer);
    return answer;
  };
  const person = await signUpAgent(gateway.url);
  const bearer = await bearerOf(gateway.url, person.key);
  const made = await madeFor(gateway.url, person.cookie);
  const secrets = {
    ...made,
    sid: person.cookie.slice('sid='.length),
    bearer,
    code: canary('code'),
    headerCode: canary('header'),
    argument: canary('argument'),
    query: canary('query'),
    path: canary('path'),
    wrongBearer: canary('bearer'),
    wrongSid: canary('sid'),
  };
  t.same(
    Object.entries(secrets).filter(([, value]) => value.length < 11),
    [],
  );
  const rpc = (name: string, values: object) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name, arguments: values },
  });
  const own = { Authorization: `Bearer ${bearer}` };
  const balance = rpc('wallet_get_balance', { currency: secrets.argument });
  await asked('/mcp', { headers: own, body: balance });
  await asked('/mcp', {
    headers: own,
    body: rpc('wallet_internal_transfer', { tag: secrets.argument, amount: 3 }),
  });
  await asked('/mcp', { headers: { Authorization: `Bearer ${secrets.wrongBearer}` }, body: balance });
  await asked(`/mcp?code=${secrets.code}`, { body: rpc('payment_order_info', {}) });
  await asked('/mcp', { headers: { 'X-MCP-Code': secrets.headerCode }, body: rpc('payment_order_info', {}) });
  await asked('/mcp', { body: rpc('payment_order_info', { code: secrets.code }) });
  await asked(`/wallet/v1/wallet/balance?currency=${secrets.query}`, { headers: own });
  for (const [path, options] of secretPaths(secrets, person.cookie)) await asked(path, options);
  await asked(`/nowhere?token=${secrets.query}`);
  await asked('/auth/v1/keys/user_keys', { headers: { Cookie: `sid=${secrets.wrongSid}` } });
  await asked('/auth/v1/app/rotate_key', {
    headers: { Cookie: person.cookie },
    body: { id: secrets.argument },
  });
  await asked('/auth/v1/keys/user_keys', { headers: { Cookie: `${person.cookie}; ${person.cookie}` } });
  t.ok(refusals.length > 10);

  const pages = await pagesOf(gateway);
  t.match(pages, /gatehouse_log_lines_total/);
  await gateway.stop();
  const { stdout, stderr } = gateway.output();
  // A module may return the arguments of a call to its caller.
  const { argument, query, path, ...hidden } = secrets;
  const texts = refusals.map(({ text }) => text).join('\n');
  t.same(namesIn(stderr, secrets), [], 'in log lines');
  t.same(namesIn(stdout, secrets), [], 'on standard output');
  t.same(namesIn(pages, secrets), [], 'in pages');
  t.same(namesIn(texts, hidden), [], 'in refusals');
  t.match(stderr, /"route":"\/mcp","path":"\/mcp","status":200,"error":"Unauthorized"/);
  t.match(stderr, /"method":"DELETE","route":"[^"]*","path":"\/wallet\/v1\/:path","status":\d+/);
  t.match(stderr, /"method":"PATCH","route":"[^"]*","path":"\/auth\/v2\/file\/stream_upload\/:fileId"/);
  t.match(stderr, /"path":"\/auth\/v1\/file\/:fileId","status":401/);
  t.match(stderr, new RegExp(`"userId":"${person.userId}"`));
});

// covers S31
t.test(
  'log: hostile paths and user agents are logged as one JSON object a line, with the outcome',
  async (t) => {
    const gateway = await launch({ configuration: {} });
    // One after the other: lines are logged in the order in which requests end.
    const sent = [
      await sendAs(`${gateway.url}/health?%0d%0a`, 'plain'),
      await sendAs(`${gateway.url}/%0d%0a%1b%5b31m`, `caf\u00e9 \u009b31m "quoted" \\`),
      await sendAs(`${gateway.url}/${'a'.repeat(3000)}`, 'b'.repeat(6000)),
    ];
    t.strictSame(sent, [200, 404, 404]);
    await gateway.stop();
    const lines = gateway.output().stderr.trimEnd().split('\n');
    for (const line of lines) {
      t.match(line, /^\{[\x20-\x7e]*\}$/);
      JSON.parse(line);
    }
    const requests = lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'request');
    t.equal(requests.length, sent.length);
    t.match(
      requests.map(({ path }) => path),
      ['/health', '/%0d%0a%1b%5b31m', '/...'],
    );
  },
);
