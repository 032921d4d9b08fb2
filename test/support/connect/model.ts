/**
 * Replaces the model services of MCP hosts. It has the host call the tool of the balance and `echo` of the everything server,
 * as far as the request names them, and ends the turn when it has their results.
 */
import http from 'node:http';
import { listenOnLoopback } from '../../../kit/http.ts';

/** Argument of the echo. */
export const MESSAGE = 'by way of the gateway';

interface Call {
  readonly id: string;
  readonly name: string;
  readonly values: object;
}

/** One after the other. */
const CALLS = [
  { tool: 'wallet_get_balance', values: {} },
  { tool: 'all_echo', values: { message: MESSAGE } },
].map(({ tool, values }, at) => ({ id: `c${at}`, named: new RegExp(`"name":"([\\w.-]*${tool})"`), values }));
const END = 'done';
/** Every service counts tokens, and no host does without the numbers. */
const USAGE = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };

/** One protocol: server-sent events, each the JSON of an event, which its `type` names. */
interface Service {
  readonly path: RegExp;
  /** In a request, once for each result of a tool that it carries. */
  readonly result: string;
  /** Without a call: the end of the turn. */
  readonly events: (call: Call | undefined) => readonly object[];
  /** The last line, where there is one. */
  readonly last?: string;
}

const openAiResponses: Service = {
  path: /\/responses$/,
  result: '"type":"function_call_output"',
  events(call) {
    const item =
      call === undefined
        ? { type: 'message', id: 'm1', role: 'assistant', content: [{ type: 'output_text', text: END }] }
        : {
            type: 'function_call',
            id: `f_${call.id}`,
            call_id: call.id,
            namespace: 'mcp__gh',
            name: call.name,
            arguments: JSON.stringify(call.values),
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
  events(call) {
    const wanted = { name: call?.name, arguments: JSON.stringify(call?.values) };
    const said =
      call === undefined
        ? { content: END }
        : { tool_calls: [{ index: 0, id: call.id, type: 'function', function: wanted }] };
    const chunk = (delta: object, reason: string | null) => ({
      id: 'r1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'x',
      choices: [{ index: 0, delta, finish_reason: reason }],
    });
    const reason = call === undefined ? 'stop' : 'tool_calls';
    return [chunk({ role: 'assistant', ...said }, null), chunk({}, reason)];
  },
  last: 'data: [DONE]\n\n',
};

const anthropic: Service = {
  path: /^\/v1\/messages/,
  result: '"type":"tool_result"',
  events(call) {
    const isCall = call !== undefined;
    const message = { id: 'm1', type: 'message', role: 'assistant', model: 'x', content: [], usage: USAGE };
    const block = isCall
      ? { type: 'tool_use', id: call.id, name: call.name, input: {} }
      : { type: 'text', text: '' };
    const delta = isCall
      ? { type: 'input_json_delta', partial_json: JSON.stringify(call.values) }
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
  events(call) {
    const part =
      call === undefined ? { text: END } : { functionCall: { name: call.name, args: call.values } };
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

/** The first whose result is not there. */
function nextCall(body: string, { result }: Service): Call | undefined {
  const calls = CALLS.flatMap(({ id, named, values }) => {
    const name = named.exec(body)?.[1];
    return name === undefined ? [] : [{ id, name, values }];
  });
  return calls[body.split(result).length - 1];
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
    const text = service.events(nextCall(body, service)).map(eventText).join('');
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text + (service.last ?? ''));
  });
  const { url } = await listenOnLoopback(server);
  return {
    url,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
