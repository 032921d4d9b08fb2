/** The gateway as a client of authorization servers: by its own document, by a registration, or as the configuration says. */
import type http from 'node:http';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import type { McpServerLogin } from '../../../src/domain/config/mcp-servers.ts';
import { clientDocument, gatewayClient } from '../../../src/io/mcp/credentials/client-document.ts';
import {
  beginLogin,
  exchangeCode,
  GrantOver,
  LoginFailure,
  refreshTokens,
} from '../../../src/io/mcp/credentials/oauth.ts';
import { type Outside, withOutside } from '../../../src/io/mcp/credentials/outside-fetch.ts';
import { createUpstreamRoutes } from '../../../src/io/routes/upstreams.ts';
import { startMcp } from '../../support/mcp.ts';
import { startOAuthUpstream } from '../../support/upstreams/oauth.ts';
import { json } from '../../support/upstreams/server.ts';

const DOCUMENTS = { client_id_metadata_document_supported: true };
const HTTPS = gatewayClient({ project: 'demo', baseUrl: 'https://gate.example' });
const PLAIN = gatewayClient({ project: 'demo', baseUrl: 'http://gate.example' });
const NOW_MS = 1_000_000;

async function start(t: Test) {
  const upstream = closeAfter(t, await startOAuthUpstream([]));
  /** Fields `Authorization` of token requests, and what answers the next ones in place of the server. */
  const authorizations: (string | undefined)[] = [];
  const answers: Record<string, (response: http.ServerResponse) => void> = {};
  const { onRequest } = upstream;
  upstream.onRequest = (request, response, body) => {
    const path = request.url ?? '';
    if (path === '/token') authorizations.push(request.headers.authorization);
    const answer = answers[path];
    if (answer === undefined) return onRequest?.(request, response, body) === true;
    answer(response);
    return true;
  };
  const outside = <T>(run: (outside: Outside) => Promise<T>) =>
    withOutside(
      { ports: () => '443', resolve: async () => [], elapsed: () => 0 },
      upstream.url,
      ['127.0.0.1'],
      run,
    );
  const login = (client: McpServerLogin['client'] = null): McpServerLogin => ({
    url: upstream.url,
    networks: [],
    client,
  });
  const begin = (client: McpServerLogin['client'] = null, gateway = HTTPS) =>
    outside((through) => beginLogin(through, login(client), gateway, 'state'));
  return {
    upstream,
    authorizations,
    answers,
    begin,
    /** Logs in, and refreshes once. */
    async live(client: McpServerLogin['client'], gateway = HTTPS) {
      const { address, flow } = await begin(client, gateway);
      const back = upstream.allow(address, 'anna').searchParams;
      const answer = { code: back.get('code') ?? '', iss: back.get('iss') ?? undefined };
      const { secret } = await outside((through) =>
        exchangeCode(through, flow, answer, gateway.redirectUri, NOW_MS),
      );
      const refresh = () => outside((through) => refreshTokens(through, secret, NOW_MS));
      return { clientId: new URL(address).searchParams.get('client_id'), first: secret, refresh };
    },
  };
}

const failing =
  (status: number, body: object = {}) =>
  (response: http.ServerResponse): void =>
    json(response, JSON.stringify(body), status);
const isFailure = (message: RegExp) => (error: unknown) =>
  error instanceof LoginFailure && message.test(error.message);

t.test(
  'client of other servers: its own document where the server takes documents, over https',
  async (t) => {
    const { upstream, live, begin, authorizations } = await start(t);
    upstream.metadata = DOCUMENTS;
    const { clientId, refresh, first } = await live(null);
    t.equal(clientId, 'https://gate.example/connect/client.json');
    t.same(upstream.registered, []);
    const next = await refresh();
    t.not(next.secret.access, first.access);
    t.equal(next.expiresMs, NOW_MS + 3_600_000);
    t.same(
      upstream.askedTokens.map((asked) => [asked.get('client_id'), asked.get('client_secret')]),
      [
        [clientId, null],
        [clientId, null],
      ],
    );
    t.same(authorizations, [undefined, undefined], 'a public client');
    const addressOf = async (...[client, gateway]: Parameters<typeof begin>) =>
      new URL((await begin(client, gateway)).address).searchParams.get('client_id');
    t.equal(await addressOf(null, PLAIN), 'c1', 'a document without https is registered');
    upstream.metadata = { client_id_metadata_document_supported: false };
    t.equal(await addressOf(null), 'c2', 'the server takes none');
  },
);

t.test('client of other servers: a registration says what the document says; refusals say why', async (t) => {
  const { upstream, begin, answers } = await start(t);
  await begin();
  const { client_id: _, ...registered } = clientDocument(HTTPS);
  t.match(upstream.registered, [{ ...registered, scope: 'read' }]);
  t.notOk('client_id' in (upstream.registered[0] ?? {}));
  for (const [answer, message] of [
    [failing(400, { error: 'invalid_redirect_uri' }), /did not register this gateway/],
    [failing(403), /did not register this gateway/],
    [failing(201), /has a fault/],
    [failing(201, { client_id: 7 }), /has a fault/],
  ] as const) {
    answers['/register'] = answer;
    const failed = await begin().catch((error: unknown) => error);
    t.ok(isFailure(message)(failed), String(failed));
  }
  upstream.metadata = { registration_endpoint: undefined };
  const failed = await begin().catch((error: unknown) => error);
  t.ok(isFailure(/takes no new clients; a personal token may work/)(failed), String(failed));
});

t.test(
  'client of other servers: authClient is sent as the server takes it, and is never registered',
  async (t) => {
    const secret = 'se:cret';
    const basic = `Basic ${Buffer.from(`own:${encodeURIComponent(secret)}`).toString('base64')}`;
    const rawBasic = `Basic ${Buffer.from(`own:${secret}`).toString('base64')}`;
    for (const [methods, client, header, inBody] of [
      [['client_secret_post'], { id: 'own', secret }, undefined, secret],
      [['client_secret_basic', 'none'], { id: 'own', secret }, [basic, rawBasic], null],
      [['none', 'client_secret_post'], { id: 'own' }, undefined, null],
      [undefined, { id: 'own' }, undefined, null],
    ] as const) {
      const { upstream, live, authorizations } = await start(t);
      upstream.metadata = {
        ...DOCUMENTS,
        ...(methods === undefined ? {} : { token_endpoint_auth_methods_supported: methods }),
      };
      const { clientId, refresh } = await live(client);
      t.equal(clientId, 'own', 'neither the document nor a registration');
      await refresh();
      t.same(upstream.registered, []);
      t.equal(authorizations.length, 2);
      for (const authorization of authorizations)
        t.ok(header === undefined ? authorization === undefined : header.includes(String(authorization)));
      for (const asked of upstream.askedTokens) t.equal(asked.get('client_secret'), inBody);
    }
  },
);

t.test(
  'client of other servers: one that is refused fails the login, and ends the grant at a refresh',
  async (t) => {
    const { live, answers } = await start(t);
    const client = { id: 'own', secret: 'x' };
    for (const error of ['invalid_client', 'invalid_grant', 'unauthorized_client']) {
      delete answers['/token'];
      const { refresh } = await live(client);
      answers['/token'] = failing(401, { error });
      const failed = await live(client).catch((reason: unknown) => reason);
      t.ok(isFailure(/refused the login/)(failed), `${error}: ${String(failed)}`);
      const ended = await refresh().catch((reason: unknown) => reason);
      t.ok(ended instanceof GrantOver, `${error}: ${String(ended)}`);
    }
    for (const answer of [
      failing(400, { error: 'temporarily_unavailable' }),
      failing(503),
      failing(200, { access_token: 'a b', token_type: 'Bearer' }),
      failing(200, { access_token: 'x', token_type: 'mac' }),
    ]) {
      delete answers['/token'];
      const { refresh } = await live(client);
      answers['/token'] = answer;
      const failed = await refresh().catch((reason: unknown) => reason);
      t.ok(failed instanceof Error && !(failed instanceof GrantOver), 'the grant may still be good');
    }
  },
);

t.test(
  'client of other servers: the document is served to any origin, and may be kept for five minutes',
  async (t) => {
    const mcp = await startMcp({ routes: createUpstreamRoutes({ credentials: {} as never }) });
    t.teardown(() => mcp.close());
    const headers = { origin: 'https://other.example' };
    const answer = await fetch(`${mcp.http.url}/connect/client.json`, { headers });
    t.equal(answer.status, 200);
    t.equal(answer.headers.get('content-type'), 'application/json');
    t.equal(answer.headers.get('cache-control'), 'public, max-age=300');
    t.equal(answer.headers.get('access-control-allow-origin'), '*');
    const document = (await answer.json()) as ReturnType<typeof clientDocument>;
    const base = document.client_uri;
    t.same(document, {
      client_id: `${base}/connect/client.json`,
      client_name: document.client_name,
      client_uri: base,
      redirect_uris: [`${base}/auth/v1/upstreams/callback`],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    });
    for (const method of ['POST', 'DELETE'])
      t.equal((await fetch(`${mcp.http.url}/connect/client.json`, { method, headers })).status, 405, method);
  },
);
