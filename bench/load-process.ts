/** The process of the load generator: takes plans from its parent, one at a time, and reports. */
import { runLoad } from './load.ts';
import type { LoadPlan } from './plan.ts';

process.on('message', (plan: LoadPlan) => {
  runLoad(plan).then(
    (report) => process.send?.(report),
    (error: unknown) => {
      process.stderr.write(`load generator: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
