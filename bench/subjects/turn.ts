/**
 * The actor runtime against its floor: durable turns at so many clients against raw LMDB puts at as many, and the
 * cost of a volatile turn. Each function measures one round in a directory of its own.
 */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import type { AnyKind, Handlers } from '../../src/actors/runtime/actor.ts';
import type { Journal } from '../../src/actors/runtime/journal/port.ts';
import type { Protocol } from '../../src/actors/runtime/protocol.ts';
import { nodeSchedule } from '../../src/actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import type { LoopPart } from '../scenario.ts';
import type { BareRuntime, Runtime } from './runtime.ts';

export interface ClosedLoopPart extends LoopPart {
  /** Processor time of this process, all threads, without opening and closing. */
  readonly cpuMs: number;
}

export interface ClosedLoop {
  readonly clients: number;
  readonly durationMs: number;
}

/** Small enough to be made before the journal opens, so that no round pays for room in the background. */
const STEP_BYTES = 16 * 1024 * 1024;

interface Counter {
  readonly total: number;
  readonly last: number;
}
interface Added {
  readonly type: 'added';
  readonly amount: number;
  readonly atMs: number;
}
type CounterProtocol = Protocol<
  { readonly type: 'add'; readonly amount: number },
  { readonly add: number },
  never,
  object,
  { readonly type: 'hit' },
  { readonly hit: number }
>;
type CounterHandlers = Handlers<Counter, CounterProtocol, Added>;

const add: CounterHandlers['add'] = (state, { amount }, turn) => ({
  events: [{ type: 'added', amount, atMs: turn.nowMs }],
  reply: state.total + amount,
});

function hit(_state: Counter, volatile: { hits: number }): number {
  volatile.hits += 1;
  return volatile.hits;
}

/** A function that is its own table, because a baseline of an older checkout calls `decide` itself. */
function counterOf({ defineActor }: Pick<Runtime, 'defineActor'>) {
  return defineActor<Counter, CounterProtocol, Added, { hits: number }>({
    kind: 'counter',
    version: 1,
    limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
    initial: () => ({ total: 0, last: 0 }),
    volatile: () => ({ hits: 0 }),
    decide: Object.assign(add, { add }),
    evolve: (state, { amount, atMs }) => ({ total: state.total + amount, last: atMs }),
    decideNow: Object.assign(hit, { hit }),
  });
}

async function inScratch<Result>(measure: (directory: string) => Promise<Result>): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-turn-'));
  try {
    return await measure(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Runs `clients` loops of `operation` for the time given. */
export async function closedLoop(
  { clients, durationMs }: ClosedLoop,
  operation: (client: number) => Promise<unknown>,
): Promise<ClosedLoopPart> {
  const round = beginRound();
  const endMs = performance.now() + durationMs;
  let operations = 0;
  const client = async (index: number) => {
    while (performance.now() < endMs) {
      await operation(index);
      operations += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
  return round(operations);
}

/** The clocks of a round: call the returned function when it is over. */
function beginRound(): (count: number) => ClosedLoopPart {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  return (count) => {
    const elapsedMs = performance.now() - startedMs;
    const { user, system } = process.cpuUsage(before);
    return { count, elapsedMs, cpuMs: (user + system) / 1000 };
  };
}

/** The floor: each client awaits its own put of a row as large as a turn's, with the journal's durability. */
export async function rawPuts(options: ClosedLoop): Promise<ClosedLoopPart> {
  return inScratch(async (directory) => {
    const root = open({ path: directory, overlappingSync: false });
    const rows = root.openDB('journal', {});
    const sequences = new Array<number>(options.clients).fill(0);
    const round = await closedLoop(options, (client) => {
      const seq = (sequences[client] ?? 0) + 1;
      sequences[client] = seq;
      return rows.put(
        ['counter', String(client), seq],
        [1, [{ type: 'added', amount: 1, atMs: Date.now() }], [], []],
      );
    });
    await root.close();
    return round;
  });
}

export interface RuntimeTurns {
  /** Each client awaits one durable command after the other on an actor of its own. */
  durableTurns(options: ClosedLoop): Promise<ClosedLoopPart>;
  /** Volatile commands over 1,000 actors, one after the other, without a pause. */
  volatileTurns(options: Pick<ClosedLoop, 'durationMs'>): Promise<ClosedLoopPart>;
}

export function turnsOf(runtime: Runtime): RuntimeTurns {
  const counter = counterOf(runtime);
  const withSystem = <Result>(measure: (system: RunningSystem) => Promise<Result>): Promise<Result> =>
    inScratch(async (directory) => {
      const journal = await runtime.openJournal({ directory, stepBytes: STEP_BYTES });
      const system = startBareSystem(counter, journal, runtime);
      const result = await measure(system);
      await system.drain(10_000);
      await system.close();
      return result;
    });
  return {
    durableTurns: (options) =>
      withSystem((system) =>
        closedLoop(options, (client) => system.ask(counter, String(client), { type: 'add', amount: 1 })),
      ),
    volatileTurns: ({ durationMs }) =>
      withSystem(async (system) => {
        const ids = Array.from({ length: 1_000 }, (_, index) => String(index));
        const command = { type: 'hit' } as const;
        const round = beginRound();
        const endMs = performance.now() + durationMs;
        let operations = 0;
        while (performance.now() < endMs) {
          for (const id of ids) system.now(counter, id, command);
          operations += ids.length;
        }
        return round(operations);
      }),
  };
}

const OWN: BareRuntime = { createActorSystem, nodeSchedule, LiveSettings };

/** Starts a system with this build's runtime unless another one is given. */
export function startBareSystem(kind: AnyKind, journal: Journal, runtime = OWN): RunningSystem {
  return runtime.createActorSystem({
    kinds: [kind],
    journal,
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
    settings: new runtime.LiveSettings(),
    clock: Date.now,
    randomBytes,
    schedule: runtime.nodeSchedule,
    onFatal: (error) => {
      throw error;
    },
    onBug: ({ error }) => {
      throw error;
    },
  });
}
