/**
 * McpVerified logins: each verifies a signature and stores a session before the answer. The floor is native
 * verification on the cores that the main thread of the gateway leaves free.
 */
import { availableParallelism } from 'node:os';
import { type Person, verifiedHeaders } from '../../kit/agent.ts';
import { SECOND_MS } from '../../src/domain/time.ts';
import { startWorker } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import { type Bench, type LoopPart, rawRequest, type Scenario } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad, makeAgents } from '../subjects/gateway.ts';

/** At some thousand logins a second an account has a hundred sessions after a minute of load; then each pushes one out. */
const USERS = 2_000;
/** A timestamp is good for 300 s either way. */
const SIGNED_ANEW_MS = 60_000;
const NATIVE = 'native verifications';
/**
 * A login waits twice, for its verification and for the disk: with 64 of them under way the processors are idle a third
 * of the time, and the ratio says how fast the disk is. At the end of a round fewer share the wait, so rounds are long.
 */
const BUSY = { connections: 256, durationMs: 300 } as const;

export const mcpLogin: Scenario = {
  name: 'mcp-login',
  summary: 'McpVerified logins, each a durable session, against native verifications of the free cores',
  defaults: BUSY,
  baseline: true,
  targets: [
    { against: NATIVE, by: 'rate', atLeast: 0.68, row: 'McpVerified logins against native verifications' },
  ],
  async run(bench) {
    const subjects: Subject[] = [];
    for (const build of bench.builds) subjects.push(await gateway(bench, build));
    if (!bench.optionalPeer('native-ed25519'))
      return { comparison: await bench.compare(subjects), notes: [] };
    const freeCores = Math.max(1, availableParallelism() - 1);
    subjects.push(await native(bench, freeCores));
    return { comparison: await bench.compare(subjects), notes: [`Free cores: ${freeCores}.`] };
  },
};

async function gateway(bench: Bench, build: Build): Promise<Subject> {
  const { name, url, pids } = await gatewayUnderLoad(bench, undefined, { build });
  const people = await makeAgents(bench, url, bench.options.users || USERS);
  let requests: string[] = [];
  let signedAtMs = Number.NEGATIVE_INFINITY;
  return bench.subject(name, pids, () => {
    if (performance.now() > signedAtMs + SIGNED_ANEW_MS) {
      signedAtMs = performance.now();
      requests = people.map((person) => loginOf(url, person));
    }
    return { url, requests, expect: '"sessionId"' };
  });
}

function loginOf(url: string, { key }: Person): string {
  const nowSeconds = Math.floor(Date.now() / SECOND_MS);
  return rawRequest('POST', `${url}/auth/v1/mcp_login`, verifiedHeaders(key, nowSeconds));
}

async function native(bench: Bench, cores: number): Promise<Subject> {
  const verifiers = await Promise.all(Array.from({ length: cores }, () => startWorker('server', 'verify')));
  bench.onTeardown(() => Promise.all(verifiers.map((verifier) => verifier.stop())));
  return bench.loop({
    name: NATIVE,
    pids: verifiers.map(({ pid }) => pid),
    async run(durationMs) {
      const runs = await Promise.all(verifiers.map((verifier) => verifier.ask<LoopPart>({ durationMs })));
      // They work side by side: what each did in its own time adds up.
      const perMs = runs.reduce((total, { count, elapsedMs }) => total + count / elapsedMs, 0);
      const count = runs.reduce((total, run) => total + run.count, 0);
      return { count, elapsedMs: count / perMs };
    },
  });
}
