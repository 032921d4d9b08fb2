/** The floor of every HTTP scenario: a uWebSockets.js handler that answers a constant, which may be handed in. */
import { listen } from './listen.ts';

const [answer = '{"result":null}'] = process.argv.slice(2);

await listen((app) =>
  app.any('/*', (response) => {
    response.cork(() => {
      response.writeHeader('Content-Type', 'application/json').end(answer);
    });
  }),
);
