/**
 * The kill -9 loop: clients work, the program is killed at a seeded moment and started on the same data folder, and all
 * acknowledged results are checked. Loopback only, bounded by the number of kills.
 */
import { type LaunchOptions, launch, type RunningGateway } from './launch.ts';
import { seededNumbers } from './seeded-numbers.ts';

export interface KillOptions {
  readonly kills: number;
  readonly dataPath: string;
  /** Clients that work at the same time. */
  readonly clients: number;
  /** Repeats the moments of the kills and what each client sends, but not how fast the machine is. */
  readonly seed: number;
  /** Damage that the checks must find, by further kills after those. */
  readonly plant?: Plant;
}

/** Both are called while the program is gone and its folder lies still. */
export interface Plant {
  /** Most kills until the damage is found. */
  readonly kills: number;
  /** After the last kill before the damage. */
  keep?(dataPath: string): void;
  harm(dataPath: string): void;
}

export interface KillReport {
  readonly seed: number;
  kills: number;
  /** Each line is a broken promise. Empty when all is well. */
  readonly faults: string[];
  /** The same lines about planted damage; absent unless all was well before. */
  found?: readonly string[];
}

/** The load until one kill. Neither promise rejects: a fault is reported. */
export interface Work {
  /** From here on the delay before the kill is counted. */
  readonly ripe: Promise<unknown>;
  /** Every client has met the end of its connection. */
  readonly cut: Promise<unknown>;
  /** Shortest and longest delay, milliseconds. */
  readonly delayMs: readonly [number, number];
}

export interface KilledClients {
  /** Begins what the kill will interrupt; `kill` counts from 0. */
  work(gateway: RunningGateway, kill: number): Promise<Work>;
  /** Called after the exit of the program, while its folder does not change. */
  observe?(): void;
  /** Continues after the restart as clients would, and returns the faults; an exception is a fault too. */
  check(gateway: RunningGateway): Promise<void>;
  /** Called after the last check that must find nothing. */
  end?(): void;
}

/** Numbers of one client, which no other client and no delay takes from. */
export function numbersOf(seed: number, client: number): () => number {
  return seededNumbers(seed + 7_919 * (client + 1));
}

/**
 * Runs the work of a client until the kill cuts its connection: that is what the loops are about, all else is a fault.
 */
export async function untilCut(report: KillReport, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // Fetch ends with this one when the connection does.
    if (!(error instanceof TypeError)) report.faults.push(String(error));
  }
}

/**
 * Kills up to the given number of times, or until a promise is broken; the data folder then shows why. Always ends the
 * program.
 */
export async function killLoop(
  { kills, dataPath, seed, plant }: KillOptions,
  launching: Omit<LaunchOptions, 'dataPath'>,
  report: KillReport,
  meet: (gateway: RunningGateway) => Promise<KilledClients>,
): Promise<void> {
  const random = seededNumbers(seed);
  const start = () => launch({ ...launching, dataPath });
  let gateway = await start();
  const killDuring = async (clients: KilledClients, kill: number, whileGone: () => void) => {
    const { ripe, cut, delayMs } = await clients.work(gateway, kill);
    // Clients that all end before a moment is ripe have said why in the report.
    await Promise.race([ripe, cut]);
    const [shortest, longest] = delayMs;
    const waitMs = shortest + random() * (longest - shortest);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    await gateway.kill();
    await cut;
    whileGone();
    gateway = await start();
    await clients.check(gateway).catch((error: unknown) => report.faults.push(String(error)));
  };
  try {
    const clients = await meet(gateway);
    while (report.kills < kills && report.faults.length === 0)
      await killDuring(clients, report.kills, () => {
        report.kills += 1;
        clients.observe?.();
        if (report.kills === kills) plant?.keep?.(dataPath);
      });
    if (report.faults.length === 0) clients.end?.();
    if (plant === undefined || report.faults.length > 0) return;
    for (let harmed = 0; harmed < plant.kills && report.faults.length === 0; harmed += 1)
      await killDuring(clients, kills + harmed, () => plant.harm(dataPath));
    report.found = report.faults.splice(0);
  } finally {
    await gateway.stop();
  }
}
