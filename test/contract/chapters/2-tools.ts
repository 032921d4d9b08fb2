/** Contract, section 2.5: custom tools and resources of the configuration. */
import { type Check, checksOf } from '../check.ts';
import { read } from '../client.ts';
import { TOOL } from '../custom-rows.ts';
import { expectOk } from '../unshown.ts';
import { PROJECT, type World } from '../world.ts';

const ARGUMENTS = { a: 'x y', b: 7 };
const URIS = ['plain', 'proved', 'app', 'open', 'code'].map((name) => `contract://core/${name}`);

/** Creates a payment order of an agent and returns its code. */
export async function paymentCode(world: World): Promise<string> {
  const { auth } = await world.agent();
  const order = { currency: 'DEMO', amount: '3.00', description: 'lunch' };
  return String(read(await world.toolJson(auth, 'payorder_create', order), 'result.code'));
}

async function asked(world: World, headers: Record<string, string>, name: string, args: object = ARGUMENTS) {
  const answer = await world.tool(headers, name, args);
  if (answer.at('error') !== undefined) throw new Error(answer.text);
  return world.core.last;
}

const TOOLS = checksOf('2.5', {
  'tools of the configuration are listed by their keys': {
    sentence: 'Config.McpTools in the static configuration declares custom tools by name.',
    async run(t, world) {
      const { auth } = await world.agent();
      const names = await world.toolNames(auth);
      for (const name of ['custom_get', 'custom_post', 'custom_query', 'custom_root', 'custom_proved'])
        t.ok(names.includes(name), name);
    },
  },
  'the call reaches the endpoint, and its JSON is returned unchanged': {
    sentence: 'endpoint | URL of the backend that receives the call.',
    async run(t, world) {
      const { auth } = await world.agent();
      world.core.answer = () => ({ body: '{"result": {"n": 1.50}}' });
      const answer = await world.tool(auth, 'custom_get', {});
      world.core.answer = () => ({});
      t.equal(answer.textAt('result.content.0.text'), '{"result": {"n": 1.50}}');
      t.equal(world.core.last.url, '/core/v1/custom/do');
    },
  },
  'the module gets user, scope, key type and project, the application only for McpApp, and never the client’s own headers':
    {
      sentence:
        "The request has the gateway's headers X-Crm, X-Scopes, X-KeyType, X-Project, and X-MCP-App-Id in an McpApp session.",
      async run(t, world) {
        const { auth, person } = await world.agent();
        const { headers } = await asked(world, { ...auth, 'X-Crm': '1', 'X-MCP-App-Id': '2' }, 'custom_get');
        t.match(headers, {
          'x-crm': person.userId,
          'x-scopes': 'McpVerified',
          'x-keytype': 'UserKey',
          'x-project': PROJECT,
        });
        t.equal(headers['x-mcp-app-id'], undefined);
        const app = await world.appAgent();
        const delegated = await asked(world, app.auth, 'custom_app');
        t.equal(delegated.headers['x-mcp-app-id'], app.appId);
        t.equal(delegated.headers['x-scopes'], 'McpApp');
      },
    },
  'a GET has its arguments in the query and no body': {
    sentence: 'method | GET or POST. A GET sends every argument in the query.',
    async run(t, world) {
      const { auth } = await world.agent();
      const { method, url, body } = await asked(world, auth, 'custom_get');
      const query = new URL(url, world.core.url).searchParams;
      t.same([method, query.get('a'), query.get('b'), body], ['GET', 'x y', '7', '']);
    },
  },
  'a POST has its arguments in a JSON body': {
    sentence: 'A POST sends them as a JSON body.',
    async run(t, world) {
      const { auth } = await world.agent();
      const { method, url, body, headers } = await asked(world, auth, 'custom_post');
      t.same([method, url, JSON.parse(body)], ['POST', '/core/v1/custom/do', ARGUMENTS]);
      t.match(headers['content-type'], /^application\/json/);
    },
  },
  'description and schema are listed unchanged, and the schema is enforced': {
    sentence: 'description | Text for clients. … inputSchema | The JSON Schema for arguments.',
    async run(t, world) {
      const { auth } = await world.agent();
      const { listAt } = await world.lists(auth, 'tools');
      const tool = listAt.find((each) => read(each, 'name') === 'custom_get');
      t.match(tool, TOOL);
      const before = world.core.asked.length;
      const wrong = await world.tool(auth, 'custom_get', { b: 'seven' });
      t.ok(wrong.at('result.isError') === true || wrong.at('error.code') === -32602, wrong.text);
      t.equal(world.core.asked.length, before, 'nothing was forwarded');
    },
  },
  'a McpBasic session can neither list nor call a tool restricted for McpBasic: -32001': {
    sentence: 'restricted | Login types that may not use the tool, such as McpBasic.',
    async run(t, world) {
      const { auth } = await world.agent('McpBasic');
      const names = await world.toolNames(auth);
      t.ok(names.includes('custom_get') && !names.includes('custom_proved'));
      t.equal((await world.tool(auth, 'custom_proved')).at('error.code'), -32001);
      const verified = await world.agent();
      t.equal((await world.tool(verified.auth, 'custom_proved')).at('error'), undefined);
    },
  },
  'a McpApp session calls the tool with appScope; other tools are -32001': {
    sentence: 'appScope | Boolean; false by default. If true, McpApp sessions may use the tool.',
    async run(t, world) {
      const { auth } = await world.appAgent();
      const names = (await world.toolNames(auth)).filter((name) => name.startsWith('custom_'));
      t.same(names, ['custom_app']);
      t.equal((await world.tool(auth, 'custom_app')).at('error'), undefined);
      t.equal((await world.tool(auth, 'custom_get')).at('error.code'), -32001);
    },
  },
  'the named argument is in the query, the others in the body': {
    sentence: 'queryParams | Arguments that a POST sends in the query, not in the body.',
    async run(t, world) {
      const { auth } = await world.agent();
      const { url, body } = await asked(world, auth, 'custom_query');
      t.equal(new URL(url, world.core.url).searchParams.get('a'), 'x y');
      t.same(JSON.parse(body), { b: 7 });
    },
  },
  'the value of the argument is the body': {
    sentence: 'bodyRootProperty | The argument that becomes the entire body.',
    async run(t, world) {
      const { auth } = await world.agent();
      const { url, body } = await asked(world, auth, 'custom_root', { a: 'q', payload: { deep: [1, 2] } });
      t.same(JSON.parse(body), { deep: [1, 2] });
      t.equal(new URL(url, world.core.url).searchParams.get('a'), 'q');
    },
  },
  'without the argument the body is {}; arguments without a target are an isError that names them': {
    sentence: 'bodyRootProperty | The argument that becomes the entire body.',
    async run(t, world) {
      const { auth } = await world.agent();
      const { url, body } = await asked(world, auth, 'custom_root', { a: 'q' });
      t.same([new URL(url, world.core.url).searchParams.get('a'), body], ['q', '{}']);
      const before = world.core.asked.length;
      const answer = await world.tool(auth, 'custom_root', { b: 7 });
      t.equal(answer.at('result.isError'), true);
      t.match(answer.textAt('result.content.0.text'), /\bb\b/);
      t.equal(world.core.asked.length, before, 'nothing was forwarded');
    },
  },
  'the tool is -32001 for a session and callable with a code of the family': {
    sentence: 'capabilityModule | chat or wallet. Makes the tool available in capability mode only.',
    async run(t, world) {
      const { auth } = await world.agent();
      t.notOk((await world.toolNames(auth)).includes('custom_code'));
      t.equal((await world.tool(auth, 'custom_code')).at('error.code'), -32001);
      const code = { 'X-MCP-Code': await paymentCode(world) };
      t.ok((await world.toolNames(code)).includes('custom_code'));
      t.equal((await world.tool(code, 'custom_code')).at('error'), undefined);
    },
  },
  'the body has the code in the named field': {
    sentence: 'capabilityCodeBodyProperty | The body field that receives the code in capability mode.',
    async run(t, world) {
      const code = await paymentCode(world);
      const { body } = await asked(world, { 'X-MCP-Code': code }, 'custom_code');
      t.same(JSON.parse(body), { ...ARGUMENTS, orderCode: code });
    },
  },
});

const RESOURCES = checksOf('2.5', {
  'resources of the configuration are listed by their URIs': {
    sentence: 'Config.McpResources declares custom resources by URI.',
    async run(t, world) {
      const { auth } = await world.agent();
      const uris = await world.resourceUris(auth);
      for (const uri of URIS.slice(0, 3)) t.ok(uris.includes(uri), uri);
    },
  },
  'a resource is read from its endpoint with the fixed query; name, description and mimeType are listed': {
    sentence:
      'A resource has endpoint, name, description, mimeType, restricted, appScope, sessionScope, capabilityModule, and possibly a constant queryString.',
    async run(t, world) {
      const { auth } = await world.agent();
      const { listAt } = await world.lists(auth, 'resources');
      const listed = listAt.find((each) => read(each, 'uri') === URIS[0]);
      t.match(listed, {
        name: 'Plain',
        description: 'A resource of the contract.',
        mimeType: 'application/json',
      });
      const answer = await world.rpc(auth, 'resources/read', { uri: URIS[0] });
      t.match(answer.at('result.contents.0'), { text: '{"result":"fine"}', mimeType: 'application/json' });
      t.equal(world.core.last.url, '/core/v1/custom/do?fixed=1&kind=plain');
    },
  },
  'resources are visible by login type, application and code, as tools are': {
    sentence:
      'A resource has endpoint, name, description, mimeType, restricted, appScope, sessionScope, capabilityModule, and possibly a constant queryString.',
    async run(t, world) {
      const visible = async (headers: Record<string, string>) =>
        (await world.resourceUris(headers)).filter((uri) => uri.startsWith('contract://'));
      const [plain, proved, app, , code] = URIS;
      const basic = await world.agent('McpBasic');
      t.notOk((await visible(basic.auth)).includes(String(proved)));
      t.ok((await visible(basic.auth)).includes(String(plain)));
      const delegated = await visible((await world.appAgent()).auth);
      t.ok(delegated.includes(String(app)) && !delegated.includes(String(plain)));
      const coded = await visible({ 'X-MCP-Code': await paymentCode(world) });
      t.ok(coded.includes(String(code)) && !coded.includes(String(plain)));
      const denied = await world.rpc(basic.auth, 'resources/read', { uri: proved });
      t.equal(denied.at('error.code'), -32001);
    },
  },
  'every URI has the form, and two lists are equal': {
    sentence:
      'The URI of a resource does not change; it has the form <scheme>://<module>/<name> with a scheme of the platform.',
    async run(t, world) {
      const { auth } = await world.agent();
      const uris = await world.resourceUris(auth);
      t.ok(uris.length > 0);
      for (const uri of uris) t.match(uri, /^[a-z][a-z0-9+.-]*:\/\/[a-z]+\/[A-Za-z0-9_/-]+$/);
      t.same(await world.resourceUris(auth), uris);
      expectOk('read', await world.rpc(auth, 'resources/read', { uri: uris[0] }));
    },
  },
});

export const CHECKS: readonly Check[] = [...TOOLS, ...RESOURCES];
