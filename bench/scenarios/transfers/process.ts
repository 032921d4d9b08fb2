/** The client of the file benches, a process of its own: takes a plan, moves whole files, answers what it measured. */
import { prepare, type TransferPlan } from './kinds.ts';

export interface TransferReport {
  readonly files: number;
  readonly bytes: number;
  readonly elapsedMs: number;
  /** When each stream ended its last file, from the start. */
  readonly streamEndsMs: readonly number[];
  /** Share of the time that this process's thread was busy. */
  readonly clientBusy: number;
}

async function run(plan: TransferPlan): Promise<TransferReport> {
  const transfers = await prepare(plan);
  for (const transfer of transfers) await transfer.prepare?.();
  const before = performance.eventLoopUtilization();
  const startedMs = performance.now();
  const elapsed = () => performance.now() - startedMs;
  let [files, bytes] = [0, 0];
  const streamEndsMs: number[] = [];
  await Promise.all(
    transfers.map(async (transfer, stream) => {
      for (
        let round = 0;
        plan.files === undefined ? elapsed() < plan.durationMs : round < plan.files;
        round++
      ) {
        await transfer.move();
        files += 1;
        bytes += transfer.bytes;
      }
      streamEndsMs[stream] = elapsed();
    }),
  );
  const elapsedMs = elapsed();
  const clientBusy = performance.eventLoopUtilization(before).utilization;
  for (const transfer of transfers) await transfer.finish?.();
  return { files, bytes, elapsedMs, streamEndsMs, clientBusy };
}

process.on('message', (plan: TransferPlan) => {
  run(plan).then(
    (report) => process.send?.({ report }),
    (error: unknown) => process.send?.({ fault: error instanceof Error ? error.message : String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.({ url: 'transfers' });
