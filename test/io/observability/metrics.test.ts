/** Metrics of calls: counts by name and outcome, and the gateway's own time apart from the modules'. */
import t from 'tap';
import { createMetrics } from '../../../src/io/observability/metrics.ts';
import { startMcp, TOKENS } from '../../support/mcp.ts';
import { BEARER, startProxy } from '../../support/module.ts';

// covers R6
t.test(
  'metrics: tool calls count by tool and outcome, refusals too; names that callers make up do not',
  async (t) => {
    const metrics = createMetrics();
    const mcp = await startMcp({
      onCall: metrics.observeCall,
      backend: ({ url }) => ({ status: url.includes('info') ? 500 : 200, body: '{}' }),
    });
    t.teardown(() => mcp.close());
    const call = (name: string, token?: string) => mcp.rpc('tools/call', { name, arguments: {} }, token);
    await call('wallet_get_balance', TOKENS.McpVerified);
    await call('wallet_get_balance', TOKENS.McpVerified);
    await call('wallet_get_info', TOKENS.McpVerified);
    await call('wallet_get_balance');
    await call('wallet_get_balance', 'stale');
    await call('made_up', TOKENS.McpVerified);
    const { body } = await metrics.render();
    const lines = body.split('\n').filter((line) => line.startsWith('gatehouse_calls_total{'));
    t.same(lines.sort(), [
      'gatehouse_calls_total{event="mcp.tool",name="",outcome="unknown"} 1',
      'gatehouse_calls_total{event="mcp.tool",name="wallet_get_balance",outcome="denied"} 2',
      'gatehouse_calls_total{event="mcp.tool",name="wallet_get_balance",outcome="ok"} 2',
      'gatehouse_calls_total{event="mcp.tool",name="wallet_get_info",outcome="error"} 1',
    ]);
    t.match(body, /^gatehouse_call_module_duration_seconds_count\{event="mcp.tool"\} 3$/m);
    t.match(body, /^gatehouse_call_gateway_duration_seconds_count\{event="mcp.tool"\} 6$/m);
  },
);

// covers R6
t.test(
  'metrics: REST calls count by module; the time of the module is not the time of the gateway',
  async (t) => {
    const metrics = createMetrics();
    const seen: { name: string; outcome: string; backendMs: number | undefined; elapsedMs: number }[] = [];
    const proxy = await startProxy({
      onCall: (call) => {
        seen.push(call);
        metrics.observeCall(call);
      },
    });
    t.teardown(() => proxy.close());
    await proxy.send('/core/v1/a/b', { headers: { authorization: `Bearer ${BEARER}` } });
    await proxy.send('/core/v1/secret-path/b');
    t.match(seen, [
      { name: 'core', outcome: 'ok', backendMs: Number },
      { name: 'core', outcome: 'denied', backendMs: undefined },
    ]);
    const [served] = seen;
    t.ok(served !== undefined && (served.backendMs ?? 0) <= served.elapsedMs);
    const { body } = await metrics.render();
    t.match(body, /^gatehouse_calls_total\{event="rest.call",name="core",outcome="ok"\} 1$/m);
    t.notMatch(body, /secret-path/);
    metrics.observeCall({
      event: 'rest.call',
      name: 'core',
      outcome: 'ok',
      elapsedMs: 3000,
      backendMs: 2990,
    });
    const slow = (await metrics.render()).body;
    t.match(slow, /^gatehouse_call_gateway_duration_seconds_bucket\{le="0.05",event="rest.call"\} 3$/m);
    t.match(slow, /^gatehouse_call_module_duration_seconds_bucket\{le="1",event="rest.call"\} 1$/m);
  },
);
