/**
 * Processes, one fault after the other: what was acknowledged is there once at every node, and no node that answers
 * has the state before an acknowledged change. `npm run soak -- cluster` does more.
 */
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { FAULT_KINDS } from '../../../tools/cluster/faults/kinds.ts';
import { type FaultReport, figuresByKind, runFaults } from '../../../tools/cluster/faults/run.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { count, depth } from '../../support/depth.ts';

const ROUNDS = 20;
/** Fewer than in the soak: two cores run them, the nodes and other suites. */
const WORK = { clients: 4, receivers: 2, streams: 2 };
/** The first stale answer ends the run. */
const PLANTED_ROUNDS = 10;
const WITHOUT_LEASE = fileURLToPath(new URL('../../support/cluster/lease-off.cjs', import.meta.url));
/** Other suites run beside this one. The bound of two seconds is that of the soak. */
const BACK_WITHIN_MS = 15_000;

t.setTimeout(400_000);

/** Prints the facts that one needs to understand and repeat a failure. */
function tell(test: Pick<typeof t, 'comment'>, { history, rounds, ...report }: FaultReport): void {
  test.comment(JSON.stringify({ ...report, kinds: figuresByKind(rounds) }));
  for (const line of history) test.comment(line);
}

postgresTest(
  'takeovers: no acknowledged write is lost or doubled, and no stale state is read',
  async (t, postgres) => {
    const rounds = count(ROUNDS);
    const { seed } = depth;
    const report = await runFaults({ ...WORK, postgres, rounds, seed, backWithinMs: BACK_WITHIN_MS });
    tell(t, report);
    t.same(report.faults, []);
    t.equal(report.rounds.length, rounds);
    t.ok(report.acknowledged > 10 * rounds, 'the clients were writing');
    t.ok(report.checked > 10 * rounds, 'and reading back');
    const kinds = new Set(report.rounds.map(({ kind }) => kind));
    t.equal(kinds.size, Math.min(rounds, Object.keys(FAULT_KINDS).length), 'each kind has its turn');
  },
);

postgresTest(
  'takeovers: a node that does not ask for its lease is found out by stale reads',
  async (t, postgres) => {
    const launch = { nodeArgs: ['--require', WITHOUT_LEASE] };
    const options = {
      ...{ nodes: 2, clients: WORK.clients, receivers: 1, streams: 1 },
      postgres,
      rounds: PLANTED_ROUNDS,
      seed: depth.seed,
      backWithinMs: BACK_WITHIN_MS,
    };
    const report = await runFaults({ ...options, kinds: ['stop'], launch });
    t.ok(report.stale > 0, 'stale reads are counted');
    t.match(report.faults.join('\n'), /stale at [ab]: /);
    t.match(report.history.join('\n'), /stop at [ab] begins/, 'the history names the fault');
  },
);
