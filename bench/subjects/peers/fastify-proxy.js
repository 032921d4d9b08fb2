/** @fastify/http-proxy in front of one address, as its documentation shows it. `node fastify-proxy.js URL`. */
import proxy from '@fastify/http-proxy';
import Fastify from 'fastify';

const [upstream] = process.argv.slice(2);
/** Connections that the gateway keeps to one module, at most. */
const undici = { connections: 128, pipelining: 1, keepAliveTimeout: 60_000 };
const app = Fastify();
app.register(proxy, { upstream, undici });
await app.listen({ host: '127.0.0.1', port: 0 });
process.send?.({ url: `http://127.0.0.1:${app.server.address().port}` });
process.on('disconnect', () => process.exit(0));
