/**
 * A wallet module that answers a balance at once, so that the way to it is what is measured; and a POST when its body is
 * whole.
 */
import { listen } from './listen.ts';

const BALANCE = JSON.stringify({
  result: {
    balances: [
      { currency: 'DEMO', balance: '1000.00', available: '1000.00', locked: '0.00', precision: 2 },
      {
        currency: 'GATE',
        balance: '1000.00000000',
        available: '1000.00000000',
        locked: '0.00000000',
        precision: 8,
      },
    ],
  },
});

await listen((app) =>
  app
    .get('/wallet/v1/balance/get', (response) => {
      response.cork(() => {
        response.writeHeader('Content-Type', 'application/json').end(BALANCE);
      });
    })
    .post('/*', (response) => {
      response.onAborted(() => undefined);
      response.onData((_piece, isLast) => {
        if (isLast) response.cork(() => response.end('{}'));
      });
    }),
);
