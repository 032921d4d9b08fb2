/** The load generator proves itself: what it can do against a handler that does nothing, before anything is judged. */
import { type Generator, startGenerator, startServer } from '../measure/children.ts';
import { rawRequest } from '../scenario.ts';
import type { LoadPlan } from './plan.ts';

export interface GeneratorCheck {
  /** Answers of an empty uWS handler: no scenario of this run can show more. */
  readonly ratePerSecond: number;
  /** Share of the time that its thread was busy at that rate. */
  readonly busy: number;
}

const CONNECTIONS = 64;
const DURATION_MAX_MS = 2_000;
const TIMEOUT_MS = 10_000;

/** `roundMs`: of the command line. The check of a short run is as short. */
export async function checkGenerator(roundMs = DURATION_MAX_MS): Promise<GeneratorCheck> {
  const durationMs = Math.min(roundMs, DURATION_MAX_MS);
  const server = await startServer('empty');
  const generator: Generator = startGenerator();
  try {
    const { hostname, port } = new URL(server.url);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const plan: LoadPlan = {
      host: hostname,
      port: Number(port),
      connections: CONNECTIONS,
      leadInMs: durationMs / 2,
      durationMs,
      requests: [
        rawRequest('POST', `${server.url}/mcp`, { Authorization: `Bearer ${'x'.repeat(46)}` }, body),
      ],
      expect: '{',
      timeoutMs: TIMEOUT_MS,
    };
    const { ratePerSecond, generatorBusy, errors } = await generator.run(plan);
    const [kind] = Object.keys(errors);
    if (kind !== undefined) throw new Error(`the generator failed against an empty handler: ${kind}`);
    return { ratePerSecond, busy: generatorBusy };
  } finally {
    await generator.stop();
    await server.stop();
  }
}
