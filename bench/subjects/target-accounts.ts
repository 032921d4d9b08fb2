/**
 * Accounts at a given deployment, through the public API alone: created one after the other, within its limits. At the
 * end their keys and sessions are removed; the accounts stay.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Answer,
  cookieOf,
  expectOk,
  logIn,
  type Person,
  request,
  UnexpectedAnswer,
  updateKey,
} from '../../kit/agent.ts';

/** Attempts of one step, each after what `Retry-After` says. */
const ATTEMPTS_MAX = 5;
const PASSING: ReadonlySet<number> = new Set([429, 503]);
const WAIT_MAX_SECONDS = 60;
const SECOND_MS = 1_000;

export interface CleanupReport {
  readonly accounts: number;
  readonly sessionsClosed: number;
  readonly keysRemoved: number;
  /** Faults of the clean-up, each once. */
  readonly faults: readonly string[];
}

/**
 * Repeats the step while it is answered with 429 or 503, each time after `Retry-After`. Nodes of a cluster answer 503 while
 * a busy machine lets their lease end.
 */
export async function retryWhenLimited<Result>(
  step: () => Promise<Result>,
  wait: (durationMs: number) => Promise<unknown> = sleep,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await step();
    } catch (error) {
      const isPassing = error instanceof UnexpectedAnswer && PASSING.has(error.answer.status);
      if (!isPassing || attempt === ATTEMPTS_MAX) throw error;
      const seconds = Number(error.answer.headers.get('retry-after') ?? 1);
      await wait(Math.min(WAIT_MAX_SECONDS, Math.max(1, seconds || 1)) * SECOND_MS);
    }
  }
}

/** Removes the key of each account, and with it every session. No public call removes an account. */
export async function removeKeys(url: string, people: readonly Person[]): Promise<CleanupReport> {
  let sessionsClosed = 0;
  let keysRemoved = 0;
  const faults = new Set<string>();
  for (const person of people) {
    try {
      const removed = await retryWhenLimited(() => removeKey(url, person));
      if (removed.status === 200) keysRemoved += 1;
      else faults.add(`remove_key: HTTP ${removed.status} ${removed.text}`);
      const { json } = removed.status === 200 ? removed : await retryWhenLimited(() => lockOut(url, person));
      sessionsClosed += Number(json['result']?.['sessionsClosed'] ?? 0);
    } catch (error) {
      faults.add(error instanceof Error ? error.message : String(error));
    }
  }
  return { accounts: people.length, sessionsClosed, keysRemoved, faults: [...faults] };
}

/** With a new login where the session is gone or too old for a change of keys. */
async function removeKey(url: string, person: Person): Promise<Answer> {
  const body = { keyId: person.keyId };
  const ask = async (cookie: string) =>
    await request(`${url}/auth/v1/keys/remove_key`, { headers: { Cookie: cookie }, body });
  const first = notTooOften('remove_key', await ask(person.cookie));
  if (first.status !== 401 && first.status !== 403) return first;
  const login = expectOk('login', await logIn(url, person.key));
  return notTooOften('remove_key', await ask(cookieOf(login)));
}

/** Locks a key out that cannot be removed: MCP access is switched off and all sessions are closed. */
async function lockOut(url: string, person: Person): Promise<Answer> {
  const cookie = cookieOf(expectOk('login', await logIn(url, person.key)));
  expectOk('update_key', await updateKey(url, { ...person, cookie }, { mcpAccess: false }));
  const headers = { Cookie: cookie };
  return expectOk('close_sessions', await request(`${url}/auth/v1/close_sessions`, { headers, body: {} }));
}

function notTooOften(step: string, answer: Answer): Answer {
  return answer.status === 429 ? expectOk(step, answer) : answer;
}

/** For the report. */
export function cleanupNotes(
  url: string,
  { accounts, sessionsClosed, keysRemoved, faults }: CleanupReport,
): string[] {
  const keys = keysRemoved === accounts ? 'their keys removed' : `${keysRemoved} of their keys removed`;
  return [
    `${accounts} accounts were made at ${url}; ${keys}, ${sessionsClosed} sessions closed. The accounts stay: no public call removes one.`,
    ...faults.map((fault) => `Left behind at ${url}: ${fault}`),
  ];
}
