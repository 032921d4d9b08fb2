/** One client that never reads among fifteen that do: what the others feel of it. */
import type { Subject } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { median } from '../statistics.ts';
import { gatherCrowds, NO_TARGET } from './sse-fanout.ts';

/**
 * Few: in a round each is sent more than the kernel takes for one that does not read (2.5 MiB on loopback). Not a
 * multiple of the streams of a session: the one that never reads needs a place in the last.
 */
const READERS = 15;
const BATCH = 10;
const MESSAGE_BYTES = 16_000;

export const sseStalled: Scenario = {
  name: 'sse-stalled',
  summary:
    'event streams: 15 readers against 15 readers and one that never reads, beside better-sse and nchan',
  unit: 'messages',
  noTarget: NO_TARGET,
  // Shorter ones would be over before the one that never reads is felt: it is sent 2.8 MiB by the slowest server in one.
  defaults: { durationMs: 500 },
  async run(bench) {
    const { durationMs, warmupMs } = bench.options;
    const crowds = await gatherCrowds(bench, READERS);
    const subjects = crowds.flatMap((crowd) =>
      [1, 0].map(
        (stalled): Subject => ({
          name: `${crowd.server.name}${stalled === 0 ? '' : ', one that never reads'}`,
          pids: crowd.server.pids,
          group: crowd.server.name,
          ...crowd.rounds({
            // Nothing needs time to be felt without one.
            durationMs: stalled === 0 ? durationMs / 3 : durationMs,
            // The same server: once is enough.
            warmupMs: stalled === 0 ? 0 : warmupMs,
            batch: BATCH,
            sizeBytes: MESSAGE_BYTES,
            stalled,
            readers: READERS,
          }),
        }),
      ),
    );
    const comparison = await bench.compare(subjects);
    const p99s = comparison.subjects.map(({ rounds: measured }) =>
      median(measured.map(({ details }) => (details as unknown as Details).latencyUs.p99)),
    );
    const notes = crowds.map(({ server }, index) => {
      const ratio = (p99s[2 * index] ?? Number.NaN) / (p99s[2 * index + 1] ?? Number.NaN);
      return `${server.name}: p99 of the arrival with one that never reads is ${ratio.toFixed(2)} times that without.`;
    });
    return { comparison, notes };
  },
};

interface Details {
  readonly latencyUs: { readonly p99: number };
}
