/** The OpenAPI description of /mcp: messages of JSON-RPC and answers. Arguments come from the table of built-in tools. */
import {
  array,
  integer,
  literal,
  named,
  nothing,
  object,
  oneOf,
  optional,
  type TSchema,
  text,
  union,
  unknown,
} from '../../../domain/schema.ts';
import type { RouteDocs } from '../../http/openapi/route-docs.ts';
import { PROTOCOL_VERSION } from '../dispatcher.ts';
import { CAPABILITIES_KEY } from '../request-headers.ts';
import { VERSION_KEY } from '../revisions.ts';
import { BATCH_MAX } from '../rpc.ts';
import type { ToolRow } from '../tool.ts';
import { exampleCalls, STREAM_EXAMPLE } from './example-calls.ts';

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

const id = union([integer(), text()], { description: 'Comes back with the answer', examples: [1] });
const own = { jsonrpc: literal('2.0'), id };
const open = object({});
const code = optional(
  text({ description: 'Capability code, where there is no session', examples: ['K7QF2M9TXB'] }),
);
/** `_meta` of the params of a request. */
const meta = optional(
  named(
    'McpRequestMeta',
    object({
      progressToken: optional(
        union([text(), integer()], {
          description:
            'Of tools/call: notifications of progress repeat it. `Accept` must name text/event-stream',
          examples: ['p1'],
        }),
      ),
      traceparent: optional(
        text({ description: 'W3C Trace Context, where the head has none', examples: [TRACEPARENT] }),
      ),
      tracestate: optional(text({ description: 'Beside `traceparent`', examples: ['vendor=1'] })),
      [VERSION_KEY]: optional(text({ description: 'Required in 2026-07-28', examples: ['2026-07-28'] })),
      [CAPABILITIES_KEY]: optional(object({}, { description: 'Required in 2026-07-28' })),
    }),
  ),
);

/** The messages by method; `call`: the params of tools/call. */
function messages(call: TSchema): TSchema {
  const version = text({ examples: [PROTOCOL_VERSION] });
  const clientInfo = object({
    name: text({ examples: ['agent'] }),
    version: text({ examples: ['1.0'] }),
  });
  const initialize = object({ protocolVersion: version, capabilities: open, clientInfo });
  const lists = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'] as const;
  const plain = ['ping', 'server/discover', ...lists] as const;
  const notifications = object({
    toolsListChanged: optional(literal(true)),
    resourcesListChanged: optional(literal(true)),
  });
  const uri = text({ examples: ['gatehouse://gateway/info'] });
  const heard = oneOf(['notifications/initialized', 'notifications/cancelled']);
  return named(
    'McpMessage',
    union([
      object({ ...own, method: literal('initialize'), params: initialize }),
      object({ ...own, method: oneOf(plain), params: optional(object({ code, _meta: meta })) }),
      object({ ...own, method: literal('tools/call'), params: call }),
      object({ ...own, method: literal('resources/read'), params: object({ uri, code, _meta: meta }) }),
      object({
        ...own,
        method: literal('subscriptions/listen'),
        params: object({ notifications, _meta: meta }),
      }),
      object({ jsonrpc: own.jsonrpc, method: heard, params: optional(open) }),
    ]),
  );
}

/** One alternative for each built-in tool, and one for tools of the configuration. */
function toolCall(tools: Readonly<Record<string, ToolRow>>): TSchema {
  const builtIn = Object.entries(tools).map(([name, { description, inputSchema }]) => {
    const given = inputSchema as unknown as TSchema;
    const needsSome = Array.isArray(inputSchema['required']);
    const values = needsSome ? given : optional(given);
    return object({ name: literal(name), arguments: values, _meta: meta }, { description });
  });
  const name = text({ description: 'A tool of the configuration, as tools/list names it' });
  return named('ToolCall', union([...builtIn, object({ name, arguments: optional(open), _meta: meta })]));
}

const tool = named(
  'Tool',
  object({
    name: text({ examples: ['wallet_get_balance'] }),
    title: optional(text({ examples: ['Wallet balance'] })),
    description: text({ examples: ['Returns the balance of the logged-in user.'] }),
    inputSchema: open,
    outputSchema: optional(open),
    annotations: optional(open),
  }),
);
const resource = named(
  'Resource',
  object({
    uri: text({ examples: ['gatehouse://gateway/info'] }),
    name: text({ examples: ['Gateway information'] }),
    description: optional(text({ examples: ['Project, version and present time.'] })),
    mimeType: optional(text({ examples: ['application/json'] })),
  }),
);
const result = union([
  named(
    'Initialized',
    object({
      protocolVersion: text({ examples: [PROTOCOL_VERSION] }),
      capabilities: open,
      serverInfo: object({ name: text({ examples: ['demo'] }), version: text({ examples: ['0.1.0'] }) }),
      instructions: text({ examples: ['How to log in, and what the groups of tools are.'] }),
    }),
  ),
  named('ToolList', object({ tools: array(tool) })),
  named(
    'ToolResult',
    object({
      content: array(object({ type: literal('text'), text: text({ examples: ['{"result":{}}'] }) })),
      structuredContent: optional(open),
      isError: optional(literal(true)),
    }),
  ),
  named('ResourceList', object({ resources: array(resource) })),
  named(
    'ResourceContents',
    object({
      contents: array(
        object({ text: text({ examples: ['{}'] }), mimeType: text({ examples: ['text/plain'] }) }),
      ),
      isError: optional(literal(true)),
    }),
  ),
  open,
]);
const error = object({
  code: integer({ examples: [-32601] }),
  message: text({ examples: ['Method not found'] }),
  data: optional(unknown({ examples: [{ retryAfterSeconds: 3 }] })),
});
const refusal = named(
  'McpRefusal',
  object({ jsonrpc: own.jsonrpc, id: optional(union([id, nothing()])), error }),
);
const answer = named(
  'McpAnswer',
  union([object({ jsonrpc: own.jsonrpc, id: union([id, nothing()]), result }), refusal]),
);

const json = (description: string, schema: TSchema) => ({ description, type: 'application/json', schema });

export const MCP_DESCRIPTION = `One message of JSON-RPC 2.0, or up to ${BATCH_MAX} in a list. A bearer or a capability code says who calls; without either of them public tools and resources alone are listed and called. What a tool takes is in \`tools/list\`. A notification gets 200 without a body. Revision 2026-07-28 sends one message, \`_meta\` and the headers beside it.`;

/** Describes POST /mcp. */
export function describeMcp(tools: Readonly<Record<string, ToolRow>>): RouteDocs {
  const message = messages(toolCall(tools));
  const limited = 'A limit: the error has the code 1002, `data` the seconds to wait';
  return {
    bearer: true,
    body: { type: 'application/json', schema: union([message, array(message)]) },
    query: object({
      code,
      tools: optional(
        text({
          description:
            'Tools to list and to call: names, patterns with `*`, or words that stand for `word_*`',
          examples: ['wallet,market_*'],
        }),
      ),
      device_guid: optional(
        text({
          description: 'Id of the device (UUID), which codes of chats ask for',
          examples: ['6f1c2b8e-0d53-4a07-9a51-3f6a0c9d2e10'],
        }),
      ),
    }),
    reads: {
      'MCP-Protocol-Version': 'optional',
      'Mcp-Method': 'optional',
      'Mcp-Name': 'optional',
      'X-MCP-Code': 'optional',
      'X-Device-Guid': 'optional',
      'Mcp-Session-Id': 'optional',
    },
    sends: ['Mcp-Session-Id'],
    examples: exampleCalls(),
    answers: {
      200: {
        ...json('The answers; errors of a message are among them', union([answer, array(answer)])),
        stream: text({
          description:
            'Of tools/call with a progress token whose module streams: notifications, then the response. Of subscriptions/listen: notifications of changed lists',
          examples: [STREAM_EXAMPLE],
        }),
      },
      202: {
        description:
          'Notifications and responses alone, at addresses that need a token and where the head has MCP-Protocol-Version',
      },
      400: json('The body is no JSON, or its revision is not served or not the one of the headers', refusal),
      404: json('This Mcp-Session-Id was ended; in revision 2026-07-28 an unknown method', refusal),
      429: json(limited, refusal),
      503: json('Too much at once, or a stop', refusal),
    },
  };
}
