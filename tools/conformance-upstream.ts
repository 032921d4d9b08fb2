/** Another MCP server behind the gateway, with the tools and prompts of the conformance suite that a module cannot have. */
import { json, resultOf, startUpstream, type UpstreamFixture } from '../test/support/upstreams/server.ts';

/** The smallest PNG, and a WAV without samples. */
const IMAGE = {
  type: 'image',
  data: 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  mimeType: 'image/png',
};
const AUDIO = {
  type: 'audio',
  data: 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=',
  mimeType: 'audio/wav',
};
const text = (words: string) => ({ type: 'text', text: words });
const resource = (uri: string, mimeType: string, words: string) => ({
  type: 'resource',
  resource: { uri, mimeType, text: words },
});

/** Content of the answers by the name of the tool. */
const TOOLS: Readonly<Record<string, readonly object[]>> = {
  test_image_content: [IMAGE],
  test_audio_content: [AUDIO],
  test_embedded_resource: [
    resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ],
  test_multiple_content_types: [
    text('Multiple content types test:'),
    IMAGE,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
};

interface Prompt {
  readonly arguments: readonly string[];
  readonly content: (values: Readonly<Record<string, string>>) => readonly object[];
}
const PROMPTS: Readonly<Record<string, Prompt>> = {
  test_simple_prompt: { arguments: [], content: () => [text('This is a simple prompt for testing.')] },
  test_prompt_with_arguments: {
    arguments: ['arg1', 'arg2'],
    content: ({ arg1, arg2 }) => [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
  },
  test_prompt_with_embedded_resource: {
    arguments: ['resourceUri'],
    content: ({ resourceUri = '' }) => [
      resource(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
      text('Please process the embedded resource above.'),
    ],
  },
  test_prompt_with_image: {
    arguments: [],
    content: () => [IMAGE, text('Please analyze the image above.')],
  },
};

export async function startConformanceUpstream(): Promise<UpstreamFixture> {
  const upstream = await startUpstream(
    Object.keys(TOOLS).map((name) => ({ name, description: name, inputSchema: { type: 'object' } })),
  );
  const prompts = Object.entries(PROMPTS).map(([name, { arguments: names }]) => ({
    name,
    description: name,
    arguments: names.map((each) => ({ name: each, required: true })),
  }));
  upstream.lists = { 'prompts/list': { prompts } };
  upstream.respond = ({ id, name, body }, response) => {
    const { params } = JSON.parse(body) as { params: { arguments?: Record<string, string> } };
    const content = PROMPTS[name]?.content(params.arguments ?? {});
    const messages = content?.map((each) => ({ role: 'user', content: each }));
    const result = messages === undefined ? { content: TOOLS[name] ?? [] } : { messages };
    json(response, resultOf(id, JSON.stringify(result)));
  };
  return upstream;
}
