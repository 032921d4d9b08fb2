/**
 * Receivers of webhooks: `/hook` answers at once, `/hole` never. Events carry the moment they were pushed (`sentMs` of
 * their data); `GET /report` reports what arrived since the previous report.
 */
import { listen } from './listen.ts';

export interface WebhookReport {
  readonly deliveries: number;
  readonly events: number;
  /** From the push to the arrival, sorted. */
  readonly latenciesMs: readonly number[];
  readonly holes: number;
}

let deliveries = 0;
let holes = 0;
let latenciesMs: number[] = [];
const nowMs = () => performance.timeOrigin + performance.now();

await listen((app) =>
  app
    .post('/hook', (response) => {
      const chunks: Buffer[] = [];
      response.onAborted(() => undefined);
      response.onData((chunk, last) => {
        chunks.push(Buffer.from(chunk.slice(0)));
        if (!last) return;
        const arrivedMs = nowMs();
        deliveries += 1;
        for (const [, sentMs] of Buffer.concat(chunks)
          .toString()
          .matchAll(/"sentMs":([0-9.]+)/g))
          latenciesMs.push(arrivedMs - Number(sentMs));
        response.cork(() => response.end());
      });
    })
    .post('/hole', (response) => {
      holes += 1;
      response.onAborted(() => undefined);
    })
    .get('/report', (response) => {
      const report: WebhookReport = {
        deliveries,
        events: latenciesMs.length,
        latenciesMs: latenciesMs.sort((one, other) => one - other),
        holes,
      };
      deliveries = 0;
      holes = 0;
      latenciesMs = [];
      response.cork(() =>
        response.writeHeader('Content-Type', 'application/json').end(JSON.stringify(report)),
      );
    }),
);
