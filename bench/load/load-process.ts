/** The process of the load generator: takes orders from its parent, one at a time, and answers each. */
import { Load, runLoad } from './load.ts';
import type { LoadOrder } from './plan.ts';

const loads: Load[] = [];

async function obey(order: LoadOrder): Promise<unknown> {
  switch (order.kind) {
    case 'run':
      return await runLoad(order.plan);
    case 'open':
      return loads.push(await Load.open(order.plan)) - 1;
    case 'round': {
      const load = loads[order.load];
      if (load === undefined) throw new Error(`no load ${order.load}`);
      if (order.requests !== undefined) load.use(order.requests);
      return await load.round(order.durationMs);
    }
  }
}

process.on('message', (order: LoadOrder) => {
  obey(order).then(
    (answer) => process.send?.(answer),
    (error: unknown) => {
      process.stderr.write(`load generator: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
