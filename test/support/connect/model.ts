/**
 * Replaces the model services of MCP hosts. It has the host call the tool of the balance, and ends the turn when the
 * result, or no such tool, is in the request.
 */
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/** As the host named it to the model. */
const TOOL = /"name":"([\w.-]*wallet_get_balance)"/;
const END = 'done';
/** Every service counts tokens, and no host does without the numbers. */
const USAGE = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };

/** One protocol: server-sent events, each the JSON of an event, which its `type` names. */
interface Service {
  readonly path: RegExp;
  /** In a request that carries the result of a tool. */
  readonly result: string;
  /** Without a tool: the end of the turn. */
  readonly events: (tool: string | undefined) => readonly object[];
  /** The last line, where there is one. */
  readonly last?: string;
}

const openAiResponses: Service = {
  path: /\/responses$/,
  result: '"type":"function_call_output"',
  events(tool) {
    const item =
      tool === undefined
        ? { type: 'message', id: 'm1', role: 'assistant', content: [{ type: 'output_text', text: END }] }
        : {
            type: 'function_call',
            id: 'f1',
            call_id: 'c1',
            namespace: 'mcp__gh',
            name: tool,
            arguments: '{}',
          };
    return [
      { type: 'response.created', response: { id: 'r1' } },
      { type: 'response.output_item.done', item },
      { type: 'response.completed', response: { id: 'r1', usage: USAGE } },
    ];
  },
};

const openAiChat: Service = {
  path: /\/chat\/completions$/,
  result: '"role":"tool"',
  events(tool) {
    const call = { index: 0, id: 'c1', type: 'function', function: { name: tool, arguments: '{}' } };
    const said = tool === undefined ? { content: END } : { tool_calls: [call] };
    const chunk = (delta: object, reason: string | null) => ({
      id: 'r1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'x',
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    const reason = tool === undefined ? 'stop' : 'tool_calls';
    return [chunk({ role: 'assistant', ...said }, null), chunk({}, reason)];
  },
  last: 'data: [DONE]\n\n',
};

const anthropic: Service = {
  path: /^\/v1\/messages/,
  result: '"type":"tool_result"',
  events(tool) {
    const isCall = tool !== undefined;
    const message = { id: 'm1', type: 'message', role: 'assistant', model: 'x', content: [], usage: USAGE };
    const block = isCall ? { type: 'tool_use', id: 'c1', name: tool, input: {} } : { type: 'text', text: '' };
    const delta = isCall
      ? { type: 'input_json_delta', partial_json: '{}' }
      : { type: 'text_delta', text: END };
    return [
      { type: 'message_start', message },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: isCall ? 'tool_use' : 'end_turn' }, usage: USAGE },
      { type: 'message_stop' },
    ];
  },
};

const gemini: Service = {
  path: /:streamGenerateContent/,
  result: '"functionResponse"',
  events(tool) {
    const part = tool === undefined ? { text: END } : { functionCall: { name: tool, args: {} } };
    const content = { role: 'model', parts: [part] };
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
    return [{ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata }];
  },
};

const SERVICES = [openAiResponses, openAiChat, anthropic, gemini];

function eventText(event: object & { readonly type?: string }): string {
  const name = event.type === undefined ? '' : `event: ${event.type}\n`;
  return `${name}data: ${JSON.stringify(event)}\n\n`;
}

export interface Model {
  readonly url: string;
  close(): void;
}

export async function startModel(): Promise<Model> {
  const server = http.createServer(async (request, response) => {
    const pieces: Buffer[] = await request.toArray();
    const body = Buffer.concat(pieces).toString();
    const service = SERVICES.find(({ path }) => path.test(request.url ?? ''));
    if (service === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    const tool = body.includes(service.result) ? undefined : TOOL.exec(body)?.[1];
    const text = service.events(tool).map(eventText).join('');
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text + (service.last ?? ''));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
