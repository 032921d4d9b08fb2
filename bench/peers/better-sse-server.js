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

const server = createServer((request, response) => {
  if (request.url === '/events')
    createSession(request, response).then((session) => channel.register(session));
  else if (request.url === '/publish') take(request, response);
  else response.end('ok');
});
server.listen(0, '127.0.0.1', 4_096, () =>
  process.send?.({ url: `http://127.0.0.1:${server.address().port}` }),
);
process.on('disconnect', () => process.exit(0));
