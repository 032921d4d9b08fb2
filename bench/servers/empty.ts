/** The floor of every HTTP scenario: a uWebSockets.js handler that answers a constant. */
import { listen } from './listen.ts';

await listen((app) =>
  app.any('/*', (response) => {
    response.cork(() => {
      response.writeHeader('Content-Type', 'application/json').end('{"result":null}');
    });
  }),
);
