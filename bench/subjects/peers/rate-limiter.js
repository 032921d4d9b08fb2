/** rate-limiter-flexible in memory, as its documentation shows it. `node rate-limiter.js ADDRESSES`; one check after the other. */
import { RateLimiterMemory } from 'rate-limiter-flexible';

const [count] = process.argv.slice(2);
/** Checks between two looks at the clock. */
const SLICE = 1_000;
/** Seconds. Counters that end while others have their turn would be made anew, each with a timer, in some slices and not in others. */
const WINDOW = 3_600;
const limiter = new RateLimiterMemory({ points: 1_000_000_000, duration: WINDOW });
const addresses = Array.from(
  { length: Number(count) },
  (_, index) => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`,
);
/** Slices are too short for all addresses: each continues where the last one ended. */
let place = 0;

async function loopFor(durationMs) {
  const startedMs = performance.now();
  let done = 0;
  while (performance.now() - startedMs < durationMs) {
    for (let left = SLICE; left > 0; left -= 1) {
      await limiter.consume(addresses[place]);
      place = place + 1 === addresses.length ? 0 : place + 1;
    }
    done += SLICE;
  }
  return { count: done, elapsedMs: performance.now() - startedMs };
}

process.on('message', ({ durationMs }) => {
  loopFor(durationMs).then(
    (report) => process.send?.(report),
    (error) => {
      process.stderr.write(`rate-limiter: ${error}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.({ url: 'rate-limiter' });
