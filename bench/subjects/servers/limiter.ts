/**
 * The limiter alone in a process: `node limiter.js LOOP ADDRESSES` runs a loop for a given time
 * (`{durationMs}`), or fills one window (`{fill: CALLERS}`).
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { addressesOf, fill, type LoopName, loopOf, makeLimiter, stepOf } from '../limiter-loops.ts';
import { work } from './working.ts';

type LimiterOrder = { readonly durationMs: number } | { readonly fill: number };

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const [name = 'address', count = '1'] = process.argv.slice(2);
const addresses = addressesOf(Number(count));
const loop = loopOf(stepOf(name as LoopName), addresses);

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

work<LimiterOrder>('limiter', (order) =>
  'fill' in order ? fill(makeLimiter(), order.fill, heapBytes) : loop(order.durationMs),
);
