/**
 * The text that a start prints: the address for MCP hosts first, then the other addresses, then the configuration of a
 * host that sends a header. Its only secret is the set-up link, which is printed nowhere else.
 */

interface BannerFacts {
  readonly version: string;
  /** Signals go to this process: `npm start` starts others around it. */
  readonly pid: number;
  /** HTTP library and Node with their versions. */
  readonly library: string;
  /** The listener, as this machine reaches it. */
  readonly url: string;
  /** The public address: `BaseUrl`. */
  readonly home: string;
  /** One-time address of the first admin; undefined when there is one. */
  readonly setupAddress: string | undefined;
  readonly internal: string;
  readonly dataPath: string;
  readonly sandbox: string | undefined;
}

/** Client configuration for hosts that read `mcpServers`; the bearer comes from mcp_login. */
function clientConfiguration(url: string): object {
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

/** One host name for all: passkeys need that of `home`, and it is this machine's own. */
function sameHost(url: string, home: string): string {
  const { hostname } = new URL(home);
  return hostname === 'localhost' ? url.replace('//127.0.0.1:', '//localhost:') : url;
}

export function banner(facts: BannerFacts): string {
  const url = sameHost(facts.url, facts.home);
  const lines = [
    '',
    `Gatehouse ${facts.version}`,
    `  for MCP hosts  ${facts.home}/connect/mcp`,
    '                 (paste this address; the host opens a page to log in and agree)',
    `  home page      ${facts.home}/`,
    `  API explorer   ${facts.home}/docs/swagger/`,
    `  MCP endpoint   ${facts.home}/mcp`,
    `  health         ${facts.home}/health`,
    `  service info   ${facts.home}/auth/v1/info`,
    ...(url === facts.home ? [] : [`  listens on     ${url}`]),
    `  metrics        ${sameHost(facts.internal, facts.home)}/metrics`,
    `  data           ${facts.dataPath}`,
    `  runs with      ${facts.library}`,
    `  process        ${facts.pid} (kill -HUP reloads, kill stops)`,
  ];
  if (facts.setupAddress === undefined) lines.push(`  admin panel    ${facts.home}/ProxyAdmin`);
  else lines.push(`  admin set-up   ${facts.setupAddress}`, '                 (once, within 30 minutes)');
  if (facts.sandbox !== undefined)
    lines.push(`  sandbox        ${sameHost(facts.sandbox, facts.home)} (simulated modules, demo money)`);
  const configuration = JSON.stringify(clientConfiguration(facts.home), null, 2);
  lines.push('', 'For an MCP host that sends a header:', configuration, '');
  return `${lines.join('\n')}\n`;
}
