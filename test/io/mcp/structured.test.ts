/** Rows with an `outputSchema`: `structuredContent` beside the text, and what has none. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import fc from 'fast-check';
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { STRUCTURED_RESULT } from '../../../src/io/mcp/answer.ts';
import { toolFaults } from '../../../src/io/mcp/tool.ts';
import { runs } from '../../support/depth.ts';
import { startMcp, TOKENS } from '../../support/mcp.ts';

const BODY =
  '{"result":{"id":9223372036854775807,"text":"\\" 9223372036854775807","n":12,"f":1.1234567890123456789,"e":1e20}}';
const TOOL = {
  method: 'GET',
  description: 'Answers with a long integer.',
  inputSchema: { type: 'object' },
  outputSchema: {
    type: 'object',
    properties: { result: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } },
    required: ['result'],
  },
};

// covers R17
t.test('structuredContent: is the object of the module, with long integers as strings', async (t) => {
  const mcp = await startMcp({
    configured: (backend) => ({ tools: { shop_item: { ...TOOL, endpoint: `${backend}/x` } }, resources: {} }),
    backend: () => ({ body: BODY }),
  });
  t.teardown(() => mcp.close());
  const { result } = await mcp.rpc('tools/call', { name: 'shop_item' }, TOKENS.McpVerified);
  t.strictSame(result, {
    content: [{ type: 'text', text: BODY }],
    structuredContent: {
      result: {
        id: '9223372036854775807',
        text: '" 9223372036854775807',
        n: 12,
        f: 1.1234567890123457,
        e: 1e20,
      },
    },
  });
  const { result: listed } = await mcp.rpc('tools/list', {}, TOKENS.McpVerified);
  const schemas = listed?.tools?.filter((tool) => 'outputSchema' in tool).map(({ name }) => name);
  t.strictSame(schemas, ['shop_item']);
  const client = closeAfter(t, new Client({ name: 'test', version: '1.0.0' }));
  const headers = { Authorization: `Bearer ${TOKENS.McpVerified}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${mcp.http.url}/mcp`), { requestInit: { headers } }),
  );
  await client.listTools();
  t.match(await client.callTool({ name: 'shop_item' }), { structuredContent: { result: { n: 12 } } });
});

const resultOf = (text: string, isError: boolean) => {
  const { wrap, structure } = STRUCTURED_RESULT;
  return wrap(text, isError, '', isError ? undefined : structure?.(text));
};

t.test('structuredContent: a failure and a text that is no JSON object have none', async (t) => {
  for (const [text, isError] of [
    [BODY, true],
    ['[1]', false],
    ['plain', false],
    ['{"a":', false],
    ['', false],
  ] as const)
    t.notOk('structuredContent' in JSON.parse(resultOf(text, isError)), text);
});

t.test('structuredContent: any object keeps its values, integers beyond 2^53 as their digits', async (t) => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.bigInt(), (object, integer) => {
      fc.pre(!Object.hasOwn(object, 'integer'));
      const text = JSON.stringify({ ...object, integer: 0 }).replace(
        /"integer":0\}$/,
        `"integer":${integer}}`,
      );
      const { structuredContent } = JSON.parse(resultOf(text, false));
      t.equal(String(structuredContent.integer), String(integer));
    }),
    runs(100),
  );
});

t.test('outputSchema: is checked at load as the inputSchema is', async (t) => {
  const row = { ...TOOL, endpoint: 'http://127.0.0.1:1/x' };
  t.strictSame(toolFaults('shop_item', row), []);
  t.match(toolFaults('shop_item', { ...row, outputSchema: { type: 'string' } }), [
    { path: /^\/outputSchema/ },
  ]);
});
