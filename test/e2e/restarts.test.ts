/** Plain EventSource clients over restarts of the program: they retry a closed port; an answer of 503 would end them. */
import t from 'tap';
import { runRestartLoop } from '../../tools/restart-loop.ts';

t.setTimeout(120_000);

const CLIENTS = 50;
const RESTARTS = 2;

// covers S157
t.test('restarts: 50 plain EventSource clients reconnect after a stop and after a kill -9', async (t) => {
  const report = await runRestartLoop({
    clients: CLIENTS,
    restarts: RESTARTS,
    dataPath: `${t.testdir({})}/data`,
  });
  t.comment(JSON.stringify(report));
  t.same(report.faults, []);
  t.equal(report.open, CLIENTS);
  t.equal(report.opened, CLIENTS * (RESTARTS + 1), 'each client reconnected once after each restart');
});
