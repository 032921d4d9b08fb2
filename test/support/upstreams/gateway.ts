/** /mcp of `startMcp` with tools of another MCP server, whose link and timers the test drives. */
import { setImmediate } from 'node:timers/promises';
import type { Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { mcpServer } from '../../../src/actors/admin/mcp-server.ts';
import { DEFAULT_TOOL_ACCESS, type McpServerConfiguration } from '../../../src/domain/config/mcp-servers.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { loadCatalog } from '../../../src/io/mcp/catalog.ts';
import type { CallTokens } from '../../../src/io/mcp/credentials/credentials.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { actorPins } from '../../../src/io/mcp/upstreams/pins.ts';
import { UpstreamServers } from '../../../src/io/mcp/upstreams/servers.ts';
import { createTestActors } from '../actors/actors.ts';
import { type McpFixtureOptions, startMcp } from '../mcp.ts';
import { startUpstream, type UpstreamFixture } from './server.ts';

interface LoggedLine {
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Tokens of people without credentials. */
export const NO_TOKENS: CallTokens = {
  connectedMs: () => undefined,
  find() {
    throw new GatewayError('UpstreamLoginRequired');
  },
  async renew() {
    throw new GatewayError('UpstreamLoginRequired');
  },
};

export const OPEN = { restricted: [] } as const;

export function configurationOf(
  { url }: UpstreamFixture,
  given: Partial<McpServerConfiguration> = {},
): McpServerConfiguration {
  const access = { promptAccess: DEFAULT_TOOL_ACCESS, resourceAccess: DEFAULT_TOOL_ACCESS };
  const way = { url, command: undefined, environment: {}, headers: {} };
  return {
    ...way,
    title: 'Other',
    login: null,
    prefix: 'up_',
    allow: undefined,
    rows: {},
    ...access,
    ...given,
  };
}

export async function startGateway(
  t: Test,
  configured: Readonly<Record<string, McpServerConfiguration>>,
  options: McpFixtureOptions = {},
  actors = createTestActors({ kinds: [mcpServer] }),
  tokens: CallTokens = NO_TOKENS,
) {
  const mcp = await startMcp(options);
  const lines: LoggedLine[] = [];
  const timers: { readonly delayMs: number; readonly run: () => void }[] = [];
  const waiting = new Set<() => void>();
  const time = { nowMs: 0 };
  const noted = () => {
    for (const check of [...waiting]) check();
  };
  const found: string[][] = [];
  const servers = new UpstreamServers({
    log: {
      write(name, ...[fields]) {
        lines.push({ name, fields: (fields ?? {}) as Record<string, unknown> });
        noted();
      },
    },
    version: '0.0.1',
    monotonicMs: () => time.nowMs,
    random: () => 1,
    timer(delayMs, run) {
      const timer = { delayMs, run };
      timers.push(timer);
      noted();
      return () => {
        const at = timers.indexOf(timer);
        if (at >= 0) timers.splice(at, 1);
      };
    },
    yieldToLoop: () => setImmediate(),
    pins: actorPins(() => actors.system),
    owner: () => `test-${process.pid}`,
    tokens,
    isAdmin: () => true,
    onFound: (server, names) => found.push([server, ...names]),
    onTools() {
      const upstream = servers.tools();
      const personal = servers.personal();
      const rows = { tools: {}, resources: {}, upstream, offers: servers.offers(), personal };
      const policy = { personalReads: true };
      mcp.catalog.reload(loadCatalog(BUILT_IN, rows, new Map([['wallet', mcp.backendUrl]]), policy));
      noted();
    },
  });
  servers.follow(configured);
  t.teardown(async () => {
    await servers.close();
    await mcp.close();
  });
  return {
    mcp,
    servers,
    actors,
    found,
    lines,
    timers,
    time,
    /** Resolves once this holds; it is asked after each line, timer and list. */
    until(holds: () => boolean): Promise<void> {
      return new Promise((resolve) => {
        const check = () => {
          if (!holds()) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      });
    },
    runTimers(): void {
      for (const { run } of timers.splice(0)) run();
    },
  };
}

/** A gateway whose one server has listed its tools. */
export async function startWithUpstream(
  t: Test,
  tools: unknown[],
  given: Partial<McpServerConfiguration> = {},
  options: McpFixtureOptions = {},
) {
  const upstream = closeAfter(t, await startUpstream(tools));
  const gateway = await startGateway(t, { other: configurationOf(upstream, given) }, options);
  await gateway.until(() => gateway.lines.length > 0 && gateway.timers.length > 0);
  return { upstream, ...gateway };
}
