/** The official client of version 2 in all of its negotiation modes: how each connects, and what it must see of the sandbox. */
import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Test } from 'tap';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';

export interface Mode {
  readonly name: string;
  readonly mode: 'legacy' | 'auto' | { readonly pin: string };
  readonly revision: string;
  readonly capabilities: object;
  readonly unknownResource: number;
}

const HANDSHAKE = {
  revision: '2024-11-05',
  capabilities: { tools: {}, resources: {} },
  unknownResource: -32002,
} as const;
const STATELESS = {
  revision: '2026-07-28',
  capabilities: {
    tools: { listChanged: true },
    resources: { listChanged: true },
    prompts: { listChanged: true },
  },
  unknownResource: -32602,
} as const;
export const MODES: readonly Mode[] = [
  { name: 'legacy', mode: 'legacy', ...HANDSHAKE },
  { name: 'auto', mode: 'auto', ...STATELESS },
  { name: 'pinned', mode: { pin: '2026-07-28' }, ...STATELESS },
];
/** Tools that are listed for a session; the others need a code. */
export const OPEN_TOOLS = Object.keys(BUILT_IN.tools).filter(
  (name) => BUILT_IN.tools[name]?.capabilityModule === undefined,
);

export async function connectMode(
  t: Test,
  url: string,
  { mode, revision }: Mode,
  headers: Readonly<Record<string, string>> = {},
  { path = '/mcp', capabilities = {} }: { path?: string; capabilities?: ClientCapabilities } = {},
) {
  const client = new Client(
    { name: 'test', version: '2.0.0' },
    { versionNegotiation: { mode }, capabilities },
  );
  const faults: Error[] = [];
  client.onerror = (error) => faults.push(error);
  t.teardown(() => client.close());
  const transport = new StreamableHTTPClientTransport(new URL(url + path), { requestInit: { headers } });
  await client.connect(transport);
  t.equal(client.getNegotiatedProtocolVersion(), revision);
  return { client, transport, faults };
}

export const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

/** `configured`: tools of the configuration, beside those of the program. */
export async function useEveryMode(t: Test, url: string, token: string, configured = 0): Promise<void> {
  for (const mode of MODES) {
    const { client, transport, faults } = await connectMode(t, url, mode, bearer(token));
    t.equal((await client.listTools()).tools.length, OPEN_TOOLS.length + configured, mode.name);
    const answer = await client.callTool({ name: 'wallet_get_balance', arguments: {} });
    t.match(answer, { content: [{ type: 'text', text: /"available":"1000\.00"/ }] }, mode.name);
    for (const { uri } of (await client.listResources()).resources)
      t.match(
        (await client.readResource({ uri })).contents,
        [{ uri, text: /^\{"result":/ }],
        `${mode.name} ${uri}`,
      );
    await transport.terminateSession();
    t.strictSame(faults, [], mode.name);
  }
}
