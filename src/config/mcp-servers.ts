/** Faults of `McpServers` that depend on several keys: prefixes, two ways to one server, the gateway itself, credentials of people. */
import { DEFAULTS } from '../domain/config/configuration.ts';
import { defaultPrefix } from '../domain/config/mcp-servers.ts';
import { isLoopback } from '../domain/limits/networks.ts';
import type { Fault } from '../domain/schema.ts';
import { isRecord } from './source.ts';

/** Faults of a file as written. */
export function mcpServerFaults(file: unknown): Fault[] {
  const servers = isRecord(file) ? file['McpServers'] : undefined;
  if (!isRecord(file) || !isRecord(servers) || Object.keys(servers).length === 0) return [];
  const faults: Fault[] = [];
  const prefixes = new Map<string, string>();
  for (const [name, server] of Object.entries(servers)) {
    if (!isRecord(server)) continue;
    const { prefix = defaultPrefix(name), url } = server;
    if (typeof prefix === 'string') {
      const other = prefixes.get(prefix);
      if (other !== undefined)
        faults.push({ path: `McpServers.${name}.prefix`, message: `is the prefix of ${other} too` });
      prefixes.set(prefix, name);
    }
    faults.push(...wayFaults(server).map((message) => ({ path: `McpServers.${name}`, message })));
    if (typeof url === 'string' && isOwnAddress(url, file))
      faults.push({ path: `McpServers.${name}.url`, message: 'is an address of this gateway' });
    faults.push(...authFaults(`McpServers.${name}`, server));
  }
  return faults;
}

function wayFaults(server: Readonly<Record<string, unknown>>): string[] {
  const has = (key: string) => server[key] !== undefined;
  if (has('url') === has('command')) return ['needs either url or command'];
  const others = has('url') ? ['env'] : ['headers', 'auth'];
  return others.filter(has).map((other) => `has ${other}, which goes with ${has('url') ? 'command' : 'url'}`);
}

/** A public key is no secret: a session that proved nothing never uses the credentials of a person. */
function authFaults(path: string, server: Readonly<Record<string, unknown>>): Fault[] {
  const { auth, headers, tools, prompts, resources } = server;
  if (auth === undefined)
    return ['authClient', 'authNetworks']
      .filter((key) => server[key] !== undefined)
      .map((key) => ({ path: `${path}.${key}`, message: 'has no effect without auth' }));
  const rows = isRecord(tools) && isRecord(tools['rows']) ? tools['rows'] : {};
  const access: [string, unknown][] = [
    ...Object.entries(rows).map(([tool, row]): [string, unknown] => [`tools.rows.${tool}`, row]),
    ['prompts', prompts],
    ['resources', resources],
  ];
  const opened = access.filter(([, row]) => {
    const restricted = isRecord(row) ? row['restricted'] : undefined;
    return Array.isArray(restricted) && !restricted.includes('McpBasic');
  });
  const own = isRecord(headers) ? Object.keys(headers) : [];
  return [
    ...opened.map(([key]) => ({
      path: `${path}.${key}.restricted`,
      message: 'must name McpBasic: with auth, calls use credentials of a person',
    })),
    ...own
      .filter((field) => field.toLowerCase() === 'authorization')
      .map((field) => ({ path: `${path}.headers.${field}`, message: 'is set by auth' })),
  ];
}

/** A gateway that calls itself would multiply each call. */
function isOwnAddress(url: string, file: Readonly<Record<string, unknown>>): boolean {
  if (!URL.canParse(url)) return false;
  const { origin, hostname, port, protocol } = new URL(url);
  const { BaseUrl: base } = file;
  if (typeof base === 'string' && URL.canParse(base) && new URL(base).origin === origin) return true;
  const asked = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  return (['Listen', 'Internal'] as const).some((section) => {
    const listener = isRecord(file[section]) ? file[section] : {};
    const { host = DEFAULTS[`${section}.host`], port: own = DEFAULTS[`${section}.port`] } = listener;
    if (own !== asked || typeof host !== 'string') return false;
    const named = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    return named === host || isLoopback(named);
  });
}
