/** People with passkeys as clients of a running gateway, and logins of theirs at a steady rate. */
import { expectOk, type Json, request } from '../../kit/agent.ts';
import { create, get, makePasskey, type Passkey } from '../../kit/authenticator.ts';
import { SECOND_MS } from '../../src/domain/time.ts';
import { eventLoopP99Ms } from '../measure/metrics.ts';
import { costOfAll } from '../measure/process-cost.ts';
import { median } from '../measure/statistics.ts';
import type { Bench } from '../scenario.ts';
import { gatewayUnderLoad } from './gateway.ts';

interface LoginLoad {
  readonly logins: number;
  readonly failures: number;
  /** From the moment a login was due to its answer; both requests and the signature are in it. Milliseconds. */
  readonly medianMs: number;
  readonly p99Ms: number;
}

const LOGINS_PER_SECOND = 200;
const USERS_MIN = 50;
/** An account answers 64 challenges in their life; that of its sign-up is one. */
const LOGINS_OF_ONE = 50;
/** The logins last so long at least: p99 needs some hundred of them. */
const LOGINS_MS = 2_000;
/** Synchronised passkeys have no counter. */
const COUNTER = 0;
/** Logins under way; one that would be more waits, and its latency shows it. */
const UNDER_WAY_MAX = 256;

async function optionsOf(url: string, kind: 'register' | 'login'): Promise<Json> {
  const answer = expectOk(`${kind}_options`, await request(`${url}/auth/v1/${kind}_options`));
  return answer.json['result'] as Json;
}

/** `url` must be an origin of passkeys: http://localhost. */
async function signUpWithPasskey(url: string): Promise<Passkey> {
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

async function logInWithPasskey(url: string, passkey: Passkey): Promise<boolean> {
  const options = await optionsOf(url, 'login');
  const credential = get(passkey, { challenge: String(options['challenge']), origin: url, counter: COUNTER });
  const body = { challengeId: options['challengeId'], credential };
  return (await request(`${url}/auth/v1/login`, { body })).status === 200;
}

/** Open loop: each login starts when it is due, however long the others take. */
async function logInsPerSecond(
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

/** One sentence: the time of logins at a steady rate, and the delay of the gateway's event loop beside an idle one. */
export async function logInsBesideIdle(bench: Bench): Promise<string> {
  const { url: address, internal, pids } = await gatewayUnderLoad(bench);
  if (internal === undefined) throw new Error('no internal listener');
  const url = address.replace('127.0.0.1', 'localhost');
  const { warmupMs, ratePerSecond = LOGINS_PER_SECOND } = bench.options;
  const durationMs = Math.max(LOGINS_MS, bench.options.durationMs);
  const logIns = ((warmupMs + durationMs) * ratePerSecond) / SECOND_MS;
  const users = Math.max(USERS_MIN, Math.ceil(logIns / LOGINS_OF_ONE));
  bench.announce(`${users} accounts sign up with a passkey`);
  const passkeys: Passkey[] = [];
  while (passkeys.length < users) passkeys.push(await signUpWithPasskey(url));
  await logInsPerSecond(url, passkeys, ratePerSecond, warmupMs);
  await eventLoopP99Ms(internal);
  await new Promise((resolve) => setTimeout(resolve, durationMs));
  const idleMs = await eventLoopP99Ms(internal);
  bench.announce(`${ratePerSecond} logins a second`);
  const cpuMs = () => costOfAll(pids)?.cpuMs ?? Number.NaN;
  const cpuBeforeMs = cpuMs();
  const load = await logInsPerSecond(url, passkeys, ratePerSecond, durationMs);
  const costMs = (cpuMs() - cpuBeforeMs) / load.logins;
  const busyMs = await eventLoopP99Ms(internal);
  const loop = `event-loop delay p99 ${busyMs.toFixed(1)} ms, idle before ${idleMs.toFixed(1)} ms`;
  const times = `${load.medianMs.toFixed(1)} ms in the median, ${load.p99Ms.toFixed(1)} ms at p99`;
  const cost = `${costMs.toFixed(2)} ms of the gateway's processor time each`;
  const failed = `${load.failures} refused`;
  return `${load.logins} logins at ${ratePerSecond}/s (${failed}): ${times}, ${cost}; ${loop} (10 ms of both is the sampling).`;
}
