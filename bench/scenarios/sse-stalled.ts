/** One client that never reads among three hundred that do: what the others feel of it. */
import { Crowd } from '../fanout.ts';
import { compare, median, type Subject } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { openGatehouse } from './sse-fanout.ts';

const READERS = 300;
const BATCH = 10;
/** Large, so that the stalled one's share of the kernel's memory is full within the round. */
const MESSAGE_BYTES = 4_000;

export const sseStalled: Scenario = {
  name: 'sse-stalled',
  summary: 'event streams: 300 readers against 300 readers and one that never reads',
  async run(bench) {
    const { durationMs, rounds } = bench.options;
    const server = await openGatehouse(bench, READERS);
    const crowd = new Crowd(server);
    bench.afterwards(() => crowd.leave());
    await crowd.gather();
    const subjects = [1, 0].map(
      (stalled): Subject => ({
        name: stalled === 0 ? `${READERS} readers` : `${READERS} readers and one that never reads`,
        pids: server.pids,
        round: () =>
          crowd.round({ durationMs, batch: BATCH, sizeBytes: MESSAGE_BYTES, stalled, readers: READERS }),
      }),
    );
    const comparison = await compare(subjects, rounds, bench.announce);
    const [withOne, without] = comparison.subjects.map(({ rounds: measured }) =>
      median(measured.map(({ details }) => (details as unknown as Details).latencyUs.p99)),
    );
    const ratio = ((withOne ?? Number.NaN) / (without ?? Number.NaN)).toFixed(2);
    return {
      comparison,
      notes: [`p99 of the arrival with one that never reads: ${ratio} times that without.`],
    };
  },
};

interface Details {
  readonly latencyUs: { readonly p99: number };
}
