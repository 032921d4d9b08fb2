/** `npm run soak -- cluster [--takeovers 300] [--seed S] [--kind K] [--lease 1000] [--within 2000] [--receivers 50] [--streams 30]`: faults of a cluster, one after the other. */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startPostgres } from '../../../kit/cluster/postgres.ts';
import { ALL_KINDS, type FaultName } from './kinds.ts';
import { figuresByKind, runFaults } from './run.ts';

const TAKEOVERS_DEFAULT = 300;
const SEED_END = 2 ** 30;
const LEASE_MS = 1_000;
const RECEIVERS = 50;
const STREAMS = 30;
/** On a machine that does nothing else. */
const BACK_WITHIN_LEASES = 2;
const FLAGS = {
  takeovers: { type: 'string' },
  seed: { type: 'string' },
  kind: { type: 'string' },
  lease: { type: 'string' },
  within: { type: 'string' },
  receivers: { type: 'string' },
  streams: { type: 'string' },
} as const;

interface SoakWishes {
  readonly rounds: number;
  readonly seed: number;
  readonly kinds: readonly FaultName[] | undefined;
  readonly leaseMs: number;
  readonly backWithinMs: number;
  readonly receivers: number;
  readonly streams: number;
}

function wishesOf(args: readonly string[]): SoakWishes | undefined {
  try {
    const { values } = parseArgs({ args: [...args], options: FLAGS });
    const rounds = Number(values.takeovers ?? TAKEOVERS_DEFAULT);
    const seed = Number(values.seed ?? randomInt(1, SEED_END));
    const leaseMs = Number(values.lease ?? LEASE_MS);
    const backWithinMs = Number(values.within ?? BACK_WITHIN_LEASES * leaseMs);
    const receivers = Number(values.receivers ?? RECEIVERS);
    const streams = Number(values.streams ?? STREAMS);
    const { kind } = values;
    if (![rounds, seed, leaseMs, backWithinMs].every((each) => Number.isInteger(each) && each >= 1))
      return undefined;
    if (![receivers, streams].every((each) => Number.isInteger(each) && each >= 0)) return undefined;
    if (kind !== undefined && !Object.hasOwn(ALL_KINDS, kind)) return undefined;
    return {
      rounds,
      seed,
      leaseMs,
      backWithinMs,
      receivers,
      streams,
      kinds: kind === undefined ? undefined : [kind as FaultName],
    };
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Prints the report; resolves with the number of broken promises. Undefined for bad usage. */
export async function soakCluster(args: readonly string[]): Promise<number | undefined> {
  const wishes = wishesOf(args);
  if (wishes === undefined) return undefined;
  const { rounds, seed, kinds, leaseMs, backWithinMs, receivers, streams } = wishes;
  const kind = kinds === undefined ? '' : ` --kind ${kinds.join()}`;
  const times = `--lease ${leaseMs} --within ${backWithinMs} --receivers ${receivers} --streams ${streams}`;
  console.log(`again: npm run soak -- cluster --takeovers ${rounds} --seed ${seed}${kind} ${times}`);
  const postgres = await startPostgres();
  if (typeof postgres === 'string') {
    console.log(postgres);
    return 1;
  }
  try {
    const {
      history,
      rounds: done,
      ...report
    } = await runFaults({
      postgres,
      rounds,
      seed,
      leaseMs,
      backWithinMs,
      receivers,
      streams,
      onRound: (line) => console.log(line),
      ...(kinds === undefined ? {} : { kinds }),
    });
    console.table(figuresByKind(done));
    for (const line of history) console.log(line);
    console.log(JSON.stringify(report, null, 2));
    return report.faults.length;
  } finally {
    await postgres.stop();
  }
}
