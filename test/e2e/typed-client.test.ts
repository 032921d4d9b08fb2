/**
 * A typed client generated from the API description compiles and executes every operation once against the program.
 * Status, header fields and body of every answer match the description.
 */
import { createServer } from 'node:http';
import t from 'tap';
import {
  challenge,
  type Json,
  newKey,
  type Person,
  request,
  signText,
  signUp,
  verifiedHeaders,
} from '../../kit/agent.ts';
import { listenFor } from '../../kit/http.ts';
import { HIGH_LIMITS, launchFor } from '../../kit/launch.ts';
import { compileJsonSchema } from '../../src/domain/schema.ts';
import {
  askRequest,
  authorizeQuery,
  challengeOfView,
  connectHost,
  consent,
  registerHost,
} from '../support/hosts.ts';
import { arrival } from '../support/outbox.ts';
import {
  type Call,
  type Description,
  examplesOf,
  generateClient,
  type Operation,
  operationsOf,
} from '../support/typed-client.ts';
import { startUpstream } from '../support/upstreams/server.ts';

t.setTimeout(240_000);

const admin = newKey();
const module = createServer((incoming, response) => {
  incoming.resume();
  incoming.on('end', () =>
    response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"result":1}'),
  );
});
const { url: moduleUrl } = await listenFor(t, module);
const upstream = await startUpstream([
  { name: 'get_forecast', description: 'A forecast', inputSchema: { type: 'object' } },
]);
t.teardown(() => upstream.close());
const gateway = await launchFor(t, {
  args: ['--sandbox'],
  configuration: {
    Settings: HIGH_LIMITS,
    Admin: { publicKeys: [admin.publicKey] },
    McpServers: { weather: { url: upstream.url }, mail: { url: upstream.url, auth: 'user' } },
    McpProfiles: { shop: { tools: ['wallet'] } },
    Modules: { core: { url: moduleUrl, key: 'core-module-key-0123456789' } },
  },
});
await gateway.said(/mcp server up/);

/** Header fields of every response, and those that depend on the origin or on the type of a file. */
const TRANSPORT =
  /^(date|connection|keep-alive|transfer-encoding|content-(type|length|encoding|security-policy)|x-content-type-options|cache-control|vary|access-control-[a-z-]+|x-accel-buffering|referrer-policy)$/;
const PHONE = '+491701234567';
const HELLO_CRC32 = 907_060_870;

interface World {
  readonly person: Person;
  readonly other: Person;
  bearer: string;
  token: string;
  appId: string;
  keyId: string;
  fileId: string;
  fileCode: string;
  draftId: string;
  toolDigest: string;
  tokenId: string;
}
type As = 'anonymous' | 'person' | 'removed' | 'agent' | 'host';
interface Step {
  readonly id: string;
  readonly as?: As;
  readonly call?: (world: World) => Call | Promise<Call>;
  readonly keep?: (world: World, result: Json) => void;
  /** Expected status of an operation that cannot succeed in this test. */
  readonly status?: number;
}

const ids = (body: (world: World) => object) => (world: World) => ({ body: body(world) });
const app = ids(({ appId }) => ({ appId }));
const upload = { query: { uploadId: String(HELLO_CRC32) } };
const init = { body: { FileName: 'notes.txt', FileSize: 5, CRC32: HELLO_CRC32, ChatId: '0' } };
const draft: Step = {
  id: 'post_auth_v2_file_create_draft',
  as: 'agent',
  call: () => ({ query: { fileName: 'notes.txt', fileSize: '5', chatId: '0' } }),
  keep(world, result) {
    world.draftId = String(result).split(':')[0] ?? '';
  },
};
const stream = (method: string, more: (world: World) => Call): Step => ({
  id: `${method}_auth_v2_file_stream_upload_fileId`,
  as: 'agent',
  call: (world) => ({ path: { fileId: world.draftId }, ...more(world) }),
});
const file = (method: string, version: string, name: string): Step => ({
  id: `${method}_auth_${version}_file_${name}`,
  as: version === 'v1' ? 'person' : 'anonymous',
  call: ({ fileId, fileCode }) => ({
    path: { [name]: version === 'v1' ? fileId : fileCode },
    head: { Range: 'bytes=0-1' },
  }),
});
const proxied = (method: string): Step => ({
  id: `${method}_module_version_path`,
  call: () => ({
    path: { module: 'core', version: 'v1', path: 'ping' },
    ...(method === 'get' || method === 'head' ? {} : { body: 'bytes' }),
  }),
});
const nameless = ids(() => ({ kind: 'user', id: '1' }));

async function connected({ person }: World) {
  const made = await connectHost(gateway.url, person.cookie, { resource: `${gateway.url}/connect/mcp` });
  const headers = { Cookie: person.cookie };
  const list = await request(`${gateway.url}/auth/v1/connected_hosts`, { headers });
  const [newest] = list.json['result'] as unknown as readonly { id: string }[];
  return { ...made, id: newest?.id };
}
/** A request for access and what the page repeats of its view. */
async function asked({ person }: World) {
  const host = await registerHost(gateway.url);
  const query = authorizeQuery(host);
  return { host, query, ...challengeOfView(await askRequest(gateway.url, person.cookie, query)) };
}
const ofProfile = { path: { profile: 'shop' } };
/** The head that ends a new session of MCP. */
async function ended() {
  const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} };
  const { headers } = await request(`${gateway.url}/mcp`, { body });
  return { head: { 'Mcp-Session-Id': headers.get('mcp-session-id') } };
}

const STEPS: readonly Step[] = [
  { id: 'post_auth_v1_login_email', as: 'anonymous' },
  {
    id: 'post_auth_v1_login',
    as: 'anonymous',
    async call({ person: { key } }) {
      const { challengeId, signPrefix } = await challenge(gateway.url, 'login');
      const code = signText(key, signPrefix + key.publicKey);
      return { body: { challengeId, publicKey: key.publicKey, code } };
    },
  },
  {
    id: 'post_auth_v1_keys_register_key',
    async call({ person }) {
      const key = newKey();
      const { challengeId, signPrefix } = await challenge(gateway.url, 'register', person.cookie);
      const code = signText(key, signPrefix + key.publicKey);
      return { body: { challengeId, code, publicKey: key.publicKey } };
    },
    keep(world, result) {
      world.keyId = String(result['key']?.['id']);
    },
  },
  {
    id: 'post_auth_v1_keys_update_key',
    call: ids(({ person }) => ({ keyId: person.keyId, mcpAccess: true })),
  },
  {
    id: 'post_auth_v1_mcp_login',
    as: 'anonymous',
    call: ({ person }) => ({ head: verifiedHeaders(person.key, Math.floor(Date.now() / 1000)) }),
    keep(world, result) {
      world.bearer = String(result['sessionId']);
    },
  },
  {
    id: 'post_auth_v1_contact_sync_token',
    async call({ person: { cookie, keyId } }) {
      const body = { keyId, cardDavAccess: true };
      await request(`${gateway.url}/auth/v1/keys/update_key`, { headers: { Cookie: cookie }, body });
      return { body: { keyId, name: 'Phone' } };
    },
    keep(world, result) {
      world.tokenId = String(result['id']);
    },
  },
  { id: 'post_auth_v1_contact_sync_remove', call: ids(({ tokenId }) => ({ id: tokenId })) },
  { id: 'get_well_known_carddav', as: 'anonymous', status: 301 },
  {
    id: 'post_auth_v1_account_contacts_add',
    async call({ person }) {
      const headers = { Cookie: person.cookie };
      const body = { phone: PHONE };
      const asked = await request(`${gateway.url}/auth/v1/login_phone`, { headers, body });
      const code = await arrival(gateway.sandbox, PHONE);
      return { body: { challengeId: asked.json['result']?.['challengeId'], code } };
    },
  },
  { id: 'post_auth_v1_account_contacts_remove', call: ids(() => ({ phone: PHONE })) },
  { id: 'post_auth_v1_account_remove', as: 'removed' },
  { id: 'post_auth_v1_upstreams_token', call: ids(() => ({ server: 'mail', token: 'personal' })) },
  { id: 'post_auth_v1_upstreams_disconnect', call: ids(() => ({ server: 'mail' })) },
  // This server offers no login.
  { id: 'post_auth_v1_upstreams_connect', call: ids(() => ({ server: 'mail' })), status: 502 },
  { id: 'get_auth_v1_upstreams_callback', status: 303 },
  { id: 'post_auth_v1_keys_remove_key', call: ids(({ keyId }) => ({ keyId })) },
  { id: 'post_mcp', as: 'agent' },
  { id: 'delete_mcp', as: 'agent', call: ended },
  { id: 'delete_mcp_p_profile', as: 'agent', call: async () => ({ ...ofProfile, ...(await ended()) }) },
  { id: 'post_mcp_p_profile', as: 'agent' },
  {
    id: 'post_connect_mcp',
    as: 'host',
    async call(world) {
      world.token = (await connected(world)).tokens.access;
      return { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } };
    },
  },
  { id: 'delete_connect_mcp', as: 'host', call: ended },
  {
    id: 'post_connect_p_profile_mcp',
    as: 'host',
    async call(world) {
      const resource = `${gateway.url}/connect/p/shop/mcp`;
      const { tokens } = await connectHost(gateway.url, world.person.cookie, { resource });
      world.token = tokens.access;
      return { ...ofProfile, body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } };
    },
  },
  {
    id: 'delete_connect_p_profile_mcp',
    as: 'host',
    call: async () => ({ ...ofProfile, ...(await ended()) }),
  },
  {
    id: 'post_connect_decide',
    async call(world) {
      const { query, challengeId, code } = await asked(world);
      return { head: { Origin: gateway.url }, body: { request: query, challengeId, code, allow: true } };
    },
  },
  {
    id: 'post_connect_token',
    as: 'anonymous',
    async call({ person }) {
      const host = await registerHost(gateway.url);
      const code = await consent(gateway.url, person.cookie, authorizeQuery(host));
      const { clientId: client_id, verifier: code_verifier } = host;
      return { body: { grant_type: 'authorization_code', client_id, code, code_verifier } };
    },
  },
  {
    id: 'post_connect_revoke',
    as: 'anonymous',
    async call(world) {
      const { host, tokens } = await connected(world);
      return { body: { token: tokens.refresh, client_id: host.clientId } };
    },
  },
  {
    id: 'post_auth_v1_connected_hosts_revoke',
    call: async (world) => ({ body: { id: (await connected(world)).id } }),
  },
  { id: 'get_ProxyAdmin_api_connected_hosts', call: ({ person }) => ({ query: { userId: person.userId } }) },
  {
    id: 'post_ProxyAdmin_api_connected_hosts_revoke',
    call: async (world) => ({ body: { userId: world.person.userId, id: (await connected(world)).id } }),
  },
  {
    id: 'post_auth_v1_app_upsert_usr_app',
    call: ids(() => ({ name: 'Tea', url: 'https://tea.example', webhookUrl: `${moduleUrl}/hook` })),
    keep(world, result) {
      world.appId = String(result['id']);
    },
  },
  {
    id: 'post_ProxyAdmin_api_apps_update',
    call: ids(({ appId }) => ({ appId, approved: true, mcpEnabled: true })),
  },
  { id: 'get_auth_v1_app_info', call: ({ appId }) => ({ query: { appId } }) },
  { id: 'get_auth_v1_app_deliveries', call: ({ appId }) => ({ query: { appId } }) },
  { id: 'get_ProxyAdmin_api_history', call: () => ({ query: { range: '5m' } }) },
  { id: 'get_ProxyAdmin_api_tools', call: () => ({ query: { range: '1h' } }) },
  { id: 'get_ProxyAdmin_api_deliveries', call: ({ appId }) => ({ query: { appId } }) },
  { id: 'post_auth_v1_app_ping', call: app },
  { id: 'post_auth_v1_app_enable', call: app },
  { id: 'post_auth_v1_app_rotate_key', call: app },
  {
    id: 'post_auth_v1_app_resend',
    // That the application was approved.
    call: ids(({ appId }) => ({ appId, from: new Date(Date.now() - 60_000).toISOString() })),
  },
  {
    id: 'post_ProxyAdmin_api_resend',
    call: ids(({ appId }) => ({ appId, webhookId: 'msg_unknown' })),
    status: 404,
  },
  {
    id: 'get_ProxyAdmin_api_delivery',
    call: ({ appId }) => ({ query: { appId, webhookId: 'msg_unknown' } }),
    status: 404,
  },
  { id: 'post_auth_v1_app_revoke_access', call: ids(({ appId }) => ({ appId })) },
  { id: 'post_auth_v1_app_grant_access', call: ids(({ appId }) => ({ appId })) },
  { id: 'post_auth_v1_app_remove', call: app },
  { id: 'post_auth_v1_file_init_upload', call: () => init },
  { id: 'get_auth_v1_file_upload_status', call: () => upload },
  { id: 'post_auth_v1_file_cancel_upload', call: () => upload },
  { id: 'post_auth_v1_file_init_upload', call: () => init },
  {
    id: 'post_auth_v1_file_upload_part',
    call: () => ({
      query: { ...upload.query, chunkNumber: '0', chunkCrc32: String(HELLO_CRC32) },
      body: 'hello',
    }),
    keep(world, result) {
      world.fileId = String(result['fileId']);
      world.fileCode = String(result['fileCode']);
    },
  },
  ...['get', 'head'].flatMap((method) => [file(method, 'v1', 'fileId'), file(method, 'v2', 'idOrCode')]),
  draft,
  stream('post', () => ({ body: 'hello' })),
  draft,
  stream('patch', () => ({
    head: { 'Upload-Offset': 0, 'Upload-Complete': '?0', 'Upload-Draft-Interop-Version': '8' },
    body: 'he',
  })),
  stream('head', () => ({})),
  stream('delete', () => ({})),
  ...['get', 'head', 'post', 'put', 'patch', 'delete'].map(proxied),
  { id: 'post_ProxyAdmin_api_settings', call: ids(() => ({ name: 'ApiRPSLimit', value: 900 })) },
  { id: 'get_ProxyAdmin_api_account', call: ({ other }) => ({ query: { userId: other.userId } }) },
  { id: 'post_ProxyAdmin_api_sessions_end', call: ids(({ other }) => ({ userId: other.userId })) },
  { id: 'get_ProxyAdmin_api_sessions', call: ({ other }) => ({ query: { userId: other.userId } }) },
  {
    id: 'post_ProxyAdmin_api_users_block',
    call: ids(({ other }) => ({ userId: other.userId, blocked: true })),
  },
  { id: 'post_ProxyAdmin_api_staff', call: ids(({ other }) => ({ userId: other.userId, role: 'viewer' })) },
  {
    id: 'post_ProxyAdmin_api_user_keys_add',
    call: ids(({ other }) => ({ userId: other.userId, publicKey: newKey().publicKey })),
    keep(world, result) {
      world.keyId = String(result['id']);
    },
  },
  ...['update', 'remove'].map((name) => ({
    id: `post_ProxyAdmin_api_user_keys_${name}`,
    call: ids(({ other, keyId }) => ({ userId: other.userId, keyId })),
  })),
  {
    id: 'get_ProxyAdmin_api_mcp_servers',
    keep(world, result) {
      const [server] = result as unknown as { served: { digest: string }[] }[];
      world.toolDigest = server?.served[0]?.digest ?? '';
    },
  },
  // Only what is hidden is approved.
  ...['hide', 'approve'].map((name) => ({
    id: `post_ProxyAdmin_api_mcp_servers_${name}`,
    call: ids(({ toolDigest }) => ({ server: 'weather', tool: 'get_forecast', digest: toolDigest })),
  })),
  { id: 'post_ProxyAdmin_api_mcp_servers_reload', call: ids(() => ({ server: 'weather' })) },
  // No delivery failed, and the set-up link of this program is unknown.
  { id: 'post_ProxyAdmin_api_actors_reset', call: nameless, status: 404 },
  { id: 'post_ProxyAdmin_api_actors_skip', call: nameless, status: 404 },
  { id: 'post_ProxyAdmin_api_claim', status: 410 },
  { id: 'post_auth_v1_close_sessions', call: ids(() => ({ others: true })) },
];
/** Ends the session that all other operations use. */
const LAST: Step = { id: 'post_auth_v1_logout' };

async function readFirst(input: string, init: RequestInit): Promise<Response> {
  const response = await fetch(input, { ...init, redirect: 'manual' });
  if (!/event-stream/.test(response.headers.get('content-type') ?? '')) return response;
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return new Response(first?.value, { status: response.status, headers: response.headers });
}

// covers R2
t.test(
  'typed client: compiles, executes every operation once, and every answer matches the API description',
  async (t) => {
    const { json } = await request(`${gateway.url}/docs/openapi.json`);
    const description = json as unknown as Description;
    const client = await generateClient(description, gateway.url);
    t.teardown(() => client.remove());
    t.equal(client.complaints, '', 'compiles with a call of each example');
    const wrong = structuredClone(description);
    const body = wrong.paths['/auth/v1/login_phone']?.['post']?.requestBody?.content['application/json'];
    Object.assign(body ?? {}, { example: { phone: 7 } });
    const refused = await generateClient(wrong, gateway.url);
    t.teardown(() => refused.remove());
    t.match(
      refused.complaints,
      /calls\.ts.*number.*is not assignable to type 'string'/,
      'the compiler finds the planted faults',
    );
    const operations = new Map(operationsOf(description).map((each) => [each.operationId, each]));
    const person = await signUp(gateway.url, admin);
    const other = await signUp(gateway.url);
    const removed = await signUp(gateway.url);
    const world: World = {
      person,
      other,
      bearer: '',
      token: '',
      appId: '',
      keyId: '',
      fileId: '',
      fileCode: '',
      draftId: '',
      toolDigest: '',
      tokenId: '',
    };
    const cookie =
      ({ cookie }: Person) =>
      () => ({ Cookie: cookie });
    const headers = {
      anonymous: () => ({}),
      person: cookie(person),
      removed: cookie(removed),
      agent,
      host,
    };
    function agent() {
      return { Authorization: `Bearer ${world.bearer}` };
    }
    function host() {
      return { Authorization: `Bearer ${world.token}` };
    }
    const planned = new Set([...STEPS, LAST].map(({ id }) => id));
    const rest = [...operations.keys()].filter((id) => !planned.has(id)).map((id): Step => ({ id }));
    const faults: unknown[] = [];
    for (const { id, as = 'person', call, keep, status = 200 } of [...STEPS, ...rest, LAST]) {
      const operation = operations.get(id);
      if (operation === undefined) {
        faults.push(`${id} is not described`);
        continue;
      }
      const values = (await call?.(world)) ?? examplesOf(operation)[0] ?? {};
      const options = { headers: headers[as](), fetch: readFirst };
      const answer = await client.run(operation, values, options);
      const met = status === 200 ? answer.status < 300 : answer.status === status;
      if (!met) faults.push(`${id}: ${answer.status} ${JSON.stringify(answer.data)}`);
      const misfits = undescribed(description, operation, answer);
      if (misfits.length > 0) faults.push([`${id}: its answer is not described`, ...misfits]);
      keep?.(world, (answer.data as Json)?.['result'] as Json);
    }
    t.same(faults, []);
  },
);

/** Differences between an answer and the description. */
function undescribed(
  { components }: Description,
  operation: Operation,
  { status, headers, data }: { status: number; headers: Headers; data: unknown },
): unknown[] {
  const described = operation.responses[status];
  if (described === undefined) return [`status ${status}`];
  const fields = new Set(Object.keys(described.headers ?? {}).map((name) => name.toLowerCase()));
  const faults: unknown[] = [...headers.keys()].filter((name) => !TRANSPORT.test(name) && !fields.has(name));
  const media = described.content?.['application/json'];
  if (media === undefined || typeof data === 'string') return faults;
  return [...faults, ...compileJsonSchema({ ...media.schema, components }).faults(data)];
}
