/** The process of one group of readers: takes orders from its parent, one at a time, and answers each. */
import { FanoutLoad, type FanoutPlan, type FanoutReport } from './fanout-load.ts';

export type FanoutOrder =
  | { readonly do: 'plan'; readonly plan: FanoutPlan }
  | { readonly do: 'connect'; readonly clients: number }
  /** Messages arrive from now on. */
  | { readonly do: 'begin' }
  /** Answered when so many messages have come in since the last report. */
  | { readonly do: 'until'; readonly messages: number }
  | { readonly do: 'report' };

let load: FanoutLoad | undefined;
let stopProbe: (() => Promise<void>) | undefined;

async function obey(order: FanoutOrder): Promise<FanoutReport | undefined> {
  if (order.do === 'plan') load = new FanoutLoad(order.plan);
  if (load === undefined) throw new Error('no plan');
  if (order.do === 'connect') await load.connect(order.clients);
  else if (order.do === 'begin') {
    load.report();
    stopProbe = load.probe();
  } else if (order.do === 'until') await load.until(order.messages);
  else if (order.do === 'report') {
    await stopProbe?.();
    return load.report();
  }
  return undefined;
}

process.on('message', (order: FanoutOrder) => {
  obey(order).then(
    (report) => process.send?.({ report }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
