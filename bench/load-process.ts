/** The process of the load generator: takes plans from its parent, one at a time, and reports. */
import { type LoadProgress, runLoad } from './load.ts';
import type { LoadPlan, LoadReport } from './plan.ts';

export type LoadMessage = { readonly progress: LoadProgress } | { readonly report: LoadReport };

function say(message: LoadMessage): void {
  process.send?.(message);
}

process.on('message', (plan: LoadPlan) => {
  runLoad(plan, (progress) => say({ progress })).then(
    (report) => say({ report }),
    (error: unknown) => {
      process.stderr.write(`load generator: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
