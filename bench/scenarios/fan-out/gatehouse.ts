/** Gatehouse as a server of many streams: settings, sessions that share the streams, and a module that pushes events. */
import { signUp } from '../../../kit/agent.ts';
import { type Bench, rawRequest } from '../../scenario.ts';
import { retryWhenLimited } from '../../subjects/target-accounts.ts';
import type { FanoutServer } from './fanout.ts';

/** Value of the setting SseStreamsPerSession. */
const STREAMS_PER_SESSION = 8;
const SIGN_UPS = 16;
const STREAMS_MAX = 50_000;
/** Events are not held back: each round waits for its own. */
export const STREAM_SETTINGS = {
  ConnectionsMax: STREAMS_MAX,
  SseStreamsMax: STREAMS_MAX,
  SseStreamsPerAddress: STREAMS_MAX,
  EventReorderMilliseconds: 0,
};

/** One request for each of the sessions that share the readers. */
export async function streamRequests(bench: Bench, url: string, clients: number): Promise<string[]> {
  const accounts = Math.ceil(clients / STREAMS_PER_SESSION);
  bench.announce(`${accounts} accounts sign up`);
  const requests: string[] = [];
  let started = 0;
  const stream = async () => {
    while (started < accounts) {
      started += 1;
      const { cookie } = await retryWhenLimited(() => signUp(url));
      requests.push(rawRequest('GET', `${url}/auth/v1/events`, { Cookie: cookie }));
    }
  };
  await Promise.all(Array.from({ length: SIGN_UPS }, stream));
  return requests;
}

/** Pushes events to the internal listener, for all users. */
export function publisherOf(
  internal: string,
  { module, key }: { readonly module: string; readonly key: string },
): FanoutServer['publish'] {
  let tick = 0;
  return async (messages) => {
    const events = messages.map((data) => {
      tick += 1;
      return `{"module":"${module}","tick":"${tick}","type":"Counted","data":${data}}`;
    });
    await post(`${internal}/internal/v1/events`, `{"events":[${events.join(',')}]}`, { 'X-Module-Key': key });
  };
}

export async function post(url: string, body: string, headers: Record<string, string> = {}): Promise<void> {
  const type = { 'Content-Type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers: { ...type, ...headers }, body });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`publish: ${answer.status} ${text}`);
}
