/** What a start prints for people: where things are and what to paste into an MCP host. Never a secret. */

export interface BannerFacts {
  readonly version: string;
  readonly url: string;
  readonly internal: string;
  readonly dataPath: string;
  readonly sandbox: string | undefined;
}

/** Client configuration for hosts that read `mcpServers`; the bearer comes from mcp_login. */
export function clientConfiguration(url: string): object {
  return {
    mcpServers: {
      gatehouse: {
        type: 'http',
        url: `${url}/mcp`,
        headers: { Authorization: 'Bearer <sessionId of mcp_login>' },
      },
    },
  };
}

export function banner(facts: BannerFacts): string {
  const lines = [
    '',
    `Gatehouse ${facts.version}`,
    `  MCP endpoint   ${facts.url}/mcp`,
    `  health         ${facts.url}/health`,
    `  service info   ${facts.url}/auth/v1/info`,
    `  metrics        ${facts.internal}/metrics`,
    `  data           ${facts.dataPath}`,
  ];
  if (facts.sandbox !== undefined)
    lines.push(`  sandbox        ${facts.sandbox} (stand-in modules, demo money)`);
  lines.push('', 'For an MCP host:', JSON.stringify(clientConfiguration(facts.url), null, 2), '');
  return `${lines.join('\n')}\n`;
}
