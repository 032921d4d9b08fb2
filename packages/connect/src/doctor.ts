/** `doctor`: checks the way to a gateway from the bottom up, and says of each step in one sentence what is wrong. */
import { lookup } from 'node:dns/promises';
import { isPlainOverNetwork } from './address.ts';
import type { AgentKey } from './agent-key.ts';
import { given, type LoginOptions, LoginRefused, login } from './login.ts';
import { causeOf, type Fetch, SYSTEM } from './send.ts';

export interface Finding {
  readonly step: 'DNS' | 'TLS' | 'Gateway' | 'Version' | 'Clock' | 'Key' | 'MCP';
  readonly ok: boolean;
  /** One sentence. */
  readonly says: string;
}

export interface DoctorOptions extends LoginOptions {
  readonly key: AgentKey;
  readonly origin: string;
  readonly mcp: string;
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  readonly explain: (refused: LoginRefused) => Promise<string>;
}

/** Clock difference beyond which the gateway refuses logins (spec 4.2: 300 s). */
const CLOCK_MS = 300_000;
/** The gateway's answer to `GET /auth/v1/info`. */
interface Info {
  readonly result?: { readonly project?: unknown; readonly version?: unknown; readonly baseUrl?: unknown };
}

/** Steps until the first that fails: the later ones depend on it. */
export async function* examine(options: DoctorOptions): AsyncGenerator<Finding> {
  for (const step of [examineName, examineGateway, examineKey, examineMcp]) {
    for await (const finding of step(options)) {
      yield finding;
      if (!finding.ok) return;
    }
  }
}

async function* examineName({ origin, resolve = addressesOf }: DoctorOptions): AsyncGenerator<Finding> {
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  try {
    const addresses = await resolve(host);
    yield { step: 'DNS', ok: true, says: `${host} has the address ${addresses.join(', ')}.` };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    yield {
      step: 'DNS',
      ok: false,
      says: `The name ${host} has no address (${code}): check the spelling and the network.`,
    };
  }
}

async function addressesOf(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

async function* examineGateway(options: DoctorOptions): AsyncGenerator<Finding> {
  const { fetch, now } = { ...SYSTEM, ...given(options) };
  let response: Response;
  try {
    response = await fetch(`${options.origin}/auth/v1/info`);
  } catch (error) {
    yield connectionFinding(options.origin, causeOf(error));
    return;
  }
  if (options.origin.startsWith('https:'))
    yield { step: 'TLS', ok: true, says: 'The certificate is trusted.' };
  else if (isPlainOverNetwork(options.origin))
    yield { step: 'TLS', ok: true, says: 'There is no TLS: everybody on the way can read the session.' };
  yield await versionFinding(options.origin, response);
  yield clockFinding(response, now());
}

function connectionFinding(origin: string, cause: unknown): Finding {
  const error = (cause instanceof AggregateError ? cause.errors[0] : cause) as NodeJS.ErrnoException;
  const { code = '', message, syscall } = error;
  if (/CERT|SIGNED|ISSUER|ALTNAME/.test(code))
    return {
      step: 'TLS',
      ok: false,
      says: `The certificate of ${origin} is not trusted: ${message} (${code}).`,
    };
  if (/SSL|TLS|EPROTO/.test(code))
    return {
      step: 'TLS',
      ok: false,
      says: `${origin} speaks no TLS on this port (${code}): check scheme and port.`,
    };
  const reason = syscall === 'connect' ? 'takes no connection' : 'closed the connection';
  return {
    step: 'Gateway',
    ok: false,
    says: `${origin} ${reason} (${code || message}): is the gateway running?`,
  };
}

async function versionFinding(origin: string, response: Response): Promise<Finding> {
  const { project, version, baseUrl } = infoOf(await response.text()).result ?? {};
  if (response.ok && typeof version === 'string' && typeof baseUrl === 'string')
    return {
      step: 'Version',
      ok: true,
      says: `${origin} is the gateway of "${String(project)}", version ${version}.`,
    };
  const says = `${origin} answers HTTP ${response.status}, and not as a Gatehouse of version 0.1 or later.`;
  return { step: 'Version', ok: false, says };
}

function infoOf(text: string): Info {
  try {
    const info: unknown = JSON.parse(text);
    return typeof info === 'object' && info !== null ? info : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

/** A wrong clock is no failure: the login corrects it. */
function clockFinding(response: Response, nowMs: number): Finding {
  const gatewayMs = Date.parse(response.headers.get('date') ?? '');
  const offMs = nowMs - gatewayMs;
  if (Number.isNaN(offMs))
    return { step: 'Clock', ok: true, says: 'The gateway sent no date, so this clock is not compared.' };
  if (Math.abs(offMs) <= CLOCK_MS)
    return { step: 'Clock', ok: true, says: "This clock agrees with the gateway's." };
  const seconds = Math.round(Math.abs(offMs) / 1000);
  const direction = offMs > 0 ? 'ahead of' : 'behind';
  const says = `This clock is ${seconds} s ${direction} the gateway's: the connector corrects that, other programs fail.`;
  return { step: 'Clock', ok: true, says };
}

async function* examineKey(options: DoctorOptions): AsyncGenerator<Finding> {
  try {
    const { loginType, expiresUtc } = await login(options);
    yield { step: 'Key', ok: true, says: `The key logs in as ${loginType}, until ${expiresUtc}.` };
  } catch (error) {
    if (!(error instanceof LoginRefused)) throw error;
    yield { step: 'Key', ok: false, says: await options.explain(error) };
  }
}

async function* examineMcp(options: DoctorOptions): AsyncGenerator<Finding> {
  const { fetch } = { ...SYSTEM, ...given(options) } satisfies { fetch: Fetch };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  const response = await fetch(options.mcp, { method: 'POST', headers, body });
  const says = response.ok
    ? `${options.mcp} answers.`
    : `${options.mcp} answers HTTP ${response.status}: is a profile or proxy path misspelled?`;
  await response.body?.cancel();
  yield { step: 'MCP', ok: response.ok, says };
}
