/** The program out of file descriptors: open connections are served, and a warning is logged at the start. */
import { connect, type Socket } from 'node:net';
import t from 'tap';
import { oneConnection, sendHttp } from '../../kit/http.ts';
import { launch } from '../../kit/launch.ts';
import { until } from '../support/until.ts';

const DESCRIPTORS = 160;

// covers S157
t.test('descriptors: /health is 200 on an open connection when no descriptor is left', async (t) => {
  const settings = { ConnectionsMax: 1_000, ConnectionsPerNetworkPercent: 0, IpRPSLimit: 0, ApiRPSLimit: 0 };
  const gateway = await launch({
    shell: `ulimit -n ${DESCRIPTORS}`,
    configuration: { Settings: settings },
  });
  const agent = oneConnection();
  const health = async () => (await sendHttp(`${gateway.url}/health`, { agent })).status;
  t.equal(await health(), 200);
  const { port, hostname } = new URL(gateway.url);
  const sockets: Socket[] = [];
  for (let at = 0; at < 2 * DESCRIPTORS; at += 1) {
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    await new Promise<void>((resolve) => socket.once('connect', resolve).once('error', () => resolve()));
  }
  // Three reads on one connection, over more than the one second for which resident memory is cached.
  const untilMs = performance.now() + 1_200;
  const statuses = new Set<number | undefined>();
  await until(async () => {
    statuses.add(await health());
    return performance.now() >= untilMs;
  });
  t.same([...statuses], [200]);
  for (const socket of sockets) socket.destroy();
  agent.destroy();
  await gateway.stop();
  const warnings = gateway
    .output()
    .stderr.split('\n')
    .filter((line) => line.includes('too few file descriptors'));
  t.equal(warnings.length, 1, 'a start says that ConnectionsMax is above the limit');
  t.match(JSON.parse(warnings[0] ?? '{}'), { connectionsMax: 1_000, descriptorLimit: DESCRIPTORS });
});
