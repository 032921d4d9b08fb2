/** The empty uWS handler: what generator and machine can do at all. No other figure of the suite can be above it. */
import { startServer } from '../children.ts';
import { rawRequest, type Scenario } from '../scenario.ts';

export const empty: Scenario = {
  name: 'empty',
  summary: 'the load generator against an empty uWebSockets.js handler: the ceiling of this machine',
  async run(bench) {
    const { target } = bench.options;
    const server = bench.invite('empty-uws') ? await startServer('empty') : undefined;
    bench.afterwards(async () => server?.stop());
    const url = target ?? server?.url ?? '';
    const name = target ?? 'empty uWS handler';
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const requests = [rawRequest('POST', `${url}/mcp`, { Authorization: `Bearer ${'x'.repeat(46)}` }, body)];
    const pids = server === undefined ? [] : [server.pid];
    const subject = bench.subject(name, pids, () => ({ url, requests, expect: '{' }));
    return {
      comparison: await bench.compare([subject]),
      notes: [
        'The generator is the limit where its own column is near 100 %: no scenario of this suite can show more than this rate.',
      ],
    };
  },
};
