// A module for Gatehouse in Node.js, standard library only: two endpoints for tools, and an event for each new order.
//   MODULE_KEY=example-key-0123456789 node examples/module.mjs
//   npm start -- --config examples/gatehouse.jsonc
import { createServer } from 'node:http';

const { PORT = '9001', HOST = '127.0.0.1', MODULE_KEY = '', GATEWAY = 'http://127.0.0.1:8081' } = process.env;
const orders = [];

/** Tells the account about an order, as a browser event and a webhook. Sending it again does no harm. */
async function push(order) {
  const tick = String(Date.now());
  const event = { module: 'core', tick, type: 'OrderCreated', crmId: order.userId, data: order };
  const headers = { 'X-Module-Key': MODULE_KEY };
  const body = JSON.stringify({ events: [event] });
  const answer = await fetch(`${GATEWAY}/internal/v1/events`, { method: 'POST', headers, body });
  if (!answer.ok) console.error('event refused:', await answer.text());
}

const endpoints = {
  'GET /core/v1/orders/find': (caller, { item = '' }) => ({
    orders: orders.filter((order) => order.userId === caller.userId && order.item.includes(item)),
  }),
  'POST /core/v1/orders/create': async (caller, { item, amount }) => {
    const order = { id: String(orders.length + 1), userId: caller.userId, item, amount, by: caller.scopes };
    orders.push(order);
    if (GATEWAY !== '') await push(order);
    return order;
  },
};

createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://module');
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  const values = text === '' ? Object.fromEntries(searchParams) : JSON.parse(text);
  // The gateway sets these headers and removes a client's own. So only the gateway may reach this port.
  const caller = { userId: request.headers['x-crm'], scopes: request.headers['x-scopes'] };
  const endpoint = endpoints[`${request.method} ${pathname}`];
  const fail = (status, code, message) => [status, { error: { code, message } }];
  let answer = fail(404, 3001, 'Not found');
  if (endpoint && !caller.userId) answer = fail(401, 3002, 'No user');
  else if (endpoint) answer = [200, { result: await endpoint(caller, values) }];
  response.writeHead(answer[0], { 'Content-Type': 'application/json' }).end(JSON.stringify(answer[1]));
}).listen(Number(PORT), HOST, () => console.log(`module at http://${HOST}:${PORT}`));
