/** People with passkeys as clients of a running gateway, and logins of theirs at a steady rate. */
import { expectOk, type Json, request } from '../../kit/agent.ts';
import { create, get, makePasskey, type Passkey } from '../../kit/authenticator.ts';
import { median } from '../measure/statistics.ts';

export interface LoginLoad {
  readonly logins: number;
  readonly failures: number;
  /** From the moment a login was due to its answer; both requests and the signature are in it. Milliseconds. */
  readonly medianMs: number;
  readonly p99Ms: number;
}

const SECOND_MS = 1_000;
/** Synchronised passkeys have no counter. */
const COUNTER = 0;
/** Logins under way; one that would be more waits, and its latency shows it. */
const UNDER_WAY_MAX = 256;

async function optionsOf(url: string, kind: 'register' | 'login'): Promise<Json> {
  const answer = expectOk(`${kind}_options`, await request(`${url}/auth/v1/${kind}_options`));
  return answer.json['result'] as Json;
}

/** `url` must be an origin of passkeys: http://localhost. */
export async function signUpWithPasskey(url: string): Promise<Passkey> {
  const passkey = makePasskey('ES256');
  const options = await optionsOf(url, 'register');
  const credential = create(passkey, {
    challenge: String(options['challenge']),
    origin: url,
    counter: COUNTER,
  });
  const body = { challengeId: options['challengeId'], code: options['code'], credential };
  expectOk('register_key', await request(`${url}/auth/v1/keys/register_key`, { body }));
  return passkey;
}

export async function logInWithPasskey(url: string, passkey: Passkey): Promise<boolean> {
  const options = await optionsOf(url, 'login');
  const credential = get(passkey, { challenge: String(options['challenge']), origin: url, counter: COUNTER });
  const body = { challengeId: options['challengeId'], credential };
  return (await request(`${url}/auth/v1/login`, { body })).status === 200;
}

/** Open loop: each login starts when it is due, however long the others take. */
export async function logInsPerSecond(
  url: string,
  passkeys: readonly Passkey[],
  perSecond: number,
  durationMs: number,
): Promise<LoginLoad> {
  const total = Math.round((perSecond * durationMs) / SECOND_MS);
  const startedMs = performance.now();
  const latencies: number[] = [];
  const underWay = new Set<Promise<void>>();
  let failures = 0;
  for (let index = 0; index < total; index += 1) {
    const dueMs = startedMs + (index * SECOND_MS) / perSecond;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (underWay.size >= UNDER_WAY_MAX) await Promise.race(underWay);
    const passkey = passkeys[index % passkeys.length];
    if (passkey === undefined) throw new Error('no passkey to log in');
    const login = logInWithPasskey(url, passkey).then((good) => {
      if (good) latencies.push(performance.now() - dueMs);
      else failures += 1;
      underWay.delete(login);
    });
    underWay.add(login);
  }
  await Promise.all(underWay);
  latencies.sort((a, b) => a - b);
  return {
    logins: latencies.length,
    failures,
    medianMs: median(latencies),
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
  };
}
