/**
 * Verifications of passkey logins through the worker pool, one thread, against the library alone on one core; and what
 * 200 whole logins a second do to the gateway's event loop.
 */

import type { Passkey } from '../../kit/authenticator.ts';
import { SECOND_MS } from '../../src/domain/time.ts';
import { startVerifier } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import { eventLoopP99Ms } from '../measure/metrics.ts';
import { costOfAll } from '../measure/process-cost.ts';
import type { Bench, Scenario } from '../scenario.ts';
import { gatewayUnderLoad } from '../subjects/gateway.ts';
import { logInsPerSecond, signUpWithPasskey } from '../subjects/passkeys.ts';

const LOGINS_PER_SECOND = 200;
const USERS_MIN = 50;
/** An account answers 64 challenges in their life; that of its sign-up is one. */
const LOGINS_OF_ONE = 50;
/** Milliseconds of logins, whatever a round takes: p99 of some hundred. */
const LOGINS_MS = 2_000;

export const passkey: Scenario = {
  name: 'passkey',
  summary: 'passkey verifications through the pool against the library alone; the event loop at 200 logins/s',
  unit: 'verifications',
  noTarget: 'passkeys of another site need a browser there',
  async run(bench) {
    const subjects = [await verifier(bench, 'pool, 1 thread', 'pool')];
    if (bench.optionalPeer('webauthn-library')) subjects.push(await verifier(bench, 'library', 'library'));
    const comparison = await bench.compare(subjects);
    return { comparison, notes: [await logins(bench)] };
  },
};

async function verifier(bench: Bench, name: string, how: 'pool' | 'library'): Promise<Subject> {
  const started = await startVerifier('webauthn', [how]);
  bench.onTeardown(() => started.stop());
  return bench.loop({ name, pids: [started.pid], run: (durationMs) => started.verifyFor(durationMs) });
}

async function logins(bench: Bench): Promise<string> {
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
