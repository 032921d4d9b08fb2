/** Text for a person when the gateway refuses the login of an agent's key. */
import { hostname } from 'node:os';
import { type AgentKey, enrollmentLink, lettersOf } from './agent-key.ts';
import { LOGIN_CODES, type LoginRefused } from './login.ts';
import { type Fetch, SYSTEM } from './send.ts';

/** Explains a refusal. The public address of the gateway is asked for, where the page of the key is. */
export async function explainRefusal(
  refused: LoginRefused,
  origin: string,
  key: AgentKey,
  fetch: Fetch = SYSTEM.fetch,
): Promise<string> {
  const page = refused.code === LOGIN_CODES.unknownKey ? await publicAddress(origin, fetch) : origin;
  return sentenceOf(refused, page, key);
}

/** Its passkeys work at `BaseUrl` alone. Without an answer, the address that is known. */
async function publicAddress(origin: string, fetch: Fetch): Promise<string> {
  try {
    const response = await fetch(`${origin}/auth/v1/info`);
    const { result } = (await response.json()) as { result?: { baseUrl?: unknown } };
    const baseUrl = String(result?.baseUrl);
    return /^https?:\/\//.test(baseUrl) && URL.canParse(baseUrl) ? baseUrl : origin;
  } catch {
    return origin;
  }
}

/** One sentence for each reason; the first one leads to the page that allows the key. */
function sentenceOf(refused: LoginRefused, origin: string, key: AgentKey): string {
  if (refused.code === LOGIN_CODES.unknownKey) {
    const link = enrollmentLink(origin, key.publicKey, hostname());
    return `The key of this agent is not allowed yet: open ${link} and type the letters ${lettersOf(key.publicKey)}.`;
  }
  if (refused.code === LOGIN_CODES.accessDenied)
    return `The gateway knows the key and refuses it: its account or application is blocked, or its MCP access is off (${key.publicKey}).`;
  if (refused.code === LOGIN_CODES.challengeExpired)
    return "The gateway refuses the timestamp: this clock is wrong, and no Date of the gateway's corrected it.";
  return `The gateway refuses the login: ${refused.message} (HTTP ${refused.status}, code ${refused.code}).`;
}
