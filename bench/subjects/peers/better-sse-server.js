/** better-sse with one channel, as its documentation shows it: GET /events, POST /publish (a JSON array), GET /health. */
import { createServer } from 'node:http';
import { createChannel, createSession } from 'better-sse';

const channel = createChannel();

async function take(request, response) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  for (const message of JSON.parse(Buffer.concat(pieces).toString())) channel.broadcast(message, 'Counted');
  response.end('ok');
}

async function answer(request, response) {
  if (request.url === '/events') channel.register(await createSession(request, response));
  else if (request.url === '/publish') await take(request, response);
  else response.end('ok');
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => response.destroy(error));
});
server.listen(0, '127.0.0.1', 4_096, () =>
  process.send?.({ url: `http://127.0.0.1:${server.address().port}` }),
);
process.on('disconnect', () => process.exit(0));
