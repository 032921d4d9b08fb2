/**
 * A fleet's day in a minute: uploads of both kinds, ranges, event streams and applications at the same time, and `kill -9` in
 * the middle, of the process or of one of several nodes. Every byte is compared, every event is expected once and in order. Loopback only.
 */
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Person, signUp, untilAvailable } from '../../kit/agent.ts';
import { startPostgres } from '../../kit/cluster/postgres.ts';
import { seededNumbers } from '../../kit/seeded-numbers.ts';
import { MemoryS3 } from '../../kit/storage/memory-s3.ts';
import { Events } from './events.ts';
import { Files } from './files.ts';
import { type FleetPlace, openNodes, openProcess } from './places.ts';
import { Site } from './site.ts';

/** The day at 100 %. */
const WHOLE = { chunked: 60, streamed: 100, ranges: 200, streams: 2_000, applications: 30 } as const;
/** Share of all bytes to upload after which the program is killed. */
const KILLED_AT = 0.4;
/** Stored before the day begins, for the first ranges. */
const FIRST_FILES = 3;
const SAMPLE_INTERVAL_MS = 5;
const SEED_END = 2 ** 30;
const PERCENT_MAX = 100;
const NODES_MAX = 8;

export interface FleetOptions {
  /** Percentage of the whole day, 1 to 100. */
  readonly percent: number;
  readonly seed: number;
}

export interface FleetReport {
  readonly seed: number;
  readonly files: number;
  readonly ranges: number;
  readonly uploadedMiB: number;
  /** Uploads that continued after the kill, and connections that broke under clients. */
  readonly resumed: number;
  readonly broken: number;
  readonly events: number;
  /** Events that streams and applications received. */
  readonly delivered: number;
  readonly reopened: number;
  readonly repeated: number;
  readonly seconds: number;
  /** Each line is a broken promise. Empty when all is well. */
  readonly faults: readonly string[];
}

/** `open`: it is stopped in the end. */
export async function runFleetDay(
  { percent, seed }: FleetOptions,
  open: (random: () => number) => Promise<FleetPlace>,
): Promise<FleetReport> {
  const startMs = performance.now();
  const count = (whole: number) => Math.max(1, Math.round((whole * percent) / PERCENT_MAX));
  const random = seededNumbers(seed);
  const place = await open(random);
  const site = new Site(place);
  const people: Person[] = [];
  // A user has one v1 upload at a time.
  for (let at = 0; at < count(WHOLE.chunked); at += 1)
    people.push(await untilAvailable(() => signUp(site.url)));
  const files = new Files(site, random);
  const events = new Events(site, people, random);
  try {
    await events.openApplications(count(WHOLE.applications));
    await events.openStreams(count(WHOLE.streams));
    for (let at = 0; at < FIRST_FILES; at += 1)
      await files.streamed(personOf(people, at), `first file ${at}`, at, files.streamedBytes());
    const isOver = new AbortController();
    const pushing = events.push(isOver.signal);
    const { uploadBytes, done } = beginWork(files, people, count);
    await untilUploaded(site, uploadBytes * KILLED_AT, done);
    await place.killAndStart();
    await done;
    isOver.abort();
    await pushing;
    await files.compareAll();
    await events.compareAll();
  } finally {
    events.close();
    await place.stop();
  }
  return {
    seed,
    files: files.stored.length,
    ranges: count(WHOLE.ranges),
    uploadedMiB: Math.round(site.uploadedBytes / 2 ** 20),
    resumed: files.resumed,
    broken: site.broken,
    events: events.pushed,
    delivered: events.delivered,
    reopened: events.reopened,
    repeated: events.repeated,
    seconds: Math.round((performance.now() - startMs) / 1_000),
    faults: site.faults,
  };
}

interface Work {
  readonly uploadBytes: number;
  readonly done: Promise<unknown>;
}

/** All clients at once. */
function beginWork(files: Files, people: readonly Person[], count: (whole: number) => number): Work {
  const numbers = (whole: number) => Array.from({ length: count(whole) }, (_, at) => at);
  const chunked = numbers(WHOLE.chunked).map((at) => ({ at, bytes: files.chunkedBytes() }));
  const streamed = numbers(WHOLE.streamed).map((at) => ({ at, bytes: files.streamedBytes() }));
  const uploadBytes = [...chunked, ...streamed].reduce((sum, { bytes }) => sum + bytes.length, 0);
  const done = Promise.all([
    ...chunked.map(({ at, bytes }) => files.chunked(personOf(people, at), `v1 upload ${at}`, bytes)),
    ...streamed.map(({ at, bytes }) => files.streamed(personOf(people, at), `v2 upload ${at}`, at, bytes)),
    ...numbers(WHOLE.ranges).map((at) => files.range(`range ${at}`)),
  ]);
  return { uploadBytes, done };
}

function personOf(people: readonly Person[], at: number): Person {
  const person = people[at % people.length];
  if (person === undefined) throw new Error('a fleet needs people');
  return person;
}

async function untilUploaded(site: Site, bytes: number, done: Promise<unknown>): Promise<void> {
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  done.then(over, over);
  while (site.uploadedBytes < bytes && !isOver)
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_INTERVAL_MS));
  if (isOver) site.faults.push('the uploads ended before the program was killed');
}

/** `npm run soak -- fleet [--percent 100] [--seed S] [--nodes N] [--bucket]`; resolves with the number of faults. Undefined for bad usage. */
export async function soakFleet(args: readonly string[]): Promise<number | undefined> {
  const options = fleetArguments(args);
  if (options === undefined) return undefined;
  const { percent, seed, nodes, bucket } = options;
  const where = `--nodes ${nodes}${bucket ? ' --bucket' : ''}`;
  console.log(`again: npm run soak -- fleet --percent ${percent} --seed ${seed} ${where}`);
  const report = nodes === 1 ? await soakProcess(options) : await soakNodes(options);
  console.log(JSON.stringify(report, undefined, 2));
  return report.faults.length;
}

/** The data folder of a failure is kept. */
async function soakProcess(options: FleetOptions): Promise<FleetReport> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-fleet-'));
  const report = await runFleetDay(options, () => openProcess(join(folder, 'data')));
  if (report.faults.length === 0) rmSync(folder, { recursive: true, force: true });
  else console.log(`kept: ${folder}`);
  return report;
}

async function soakNodes(options: FleetArguments): Promise<FleetReport> {
  const postgres = await startPostgres();
  if (typeof postgres === 'string') throw new Error(postgres);
  const objectStorage = options.bucket ? await MemoryS3.start() : undefined;
  const place = { postgres, nodes: options.nodes, objectStorage };
  try {
    return await runFleetDay(options, (random) => openNodes(place, random));
  } finally {
    await postgres.stop();
    objectStorage?.stop();
  }
}

interface FleetArguments extends FleetOptions {
  /** 1: a process without `Cluster`. */
  readonly nodes: number;
  /** Files are in a bucket, with several nodes. */
  readonly bucket: boolean;
}

/** Undefined for bad usage. */
export function fleetArguments(args: readonly string[]): FleetArguments | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        percent: { type: 'string' },
        seed: { type: 'string' },
        nodes: { type: 'string' },
        bucket: { type: 'boolean', default: false },
      },
    });
    const percent = Number(values.percent ?? PERCENT_MAX);
    const seed = Number(values.seed ?? randomInt(1, SEED_END));
    const nodes = Number(values.nodes ?? 1);
    const isCount = (value: number) => Number.isInteger(value) && value >= 1;
    const fits = percent >= 1 && percent <= PERCENT_MAX && isCount(seed) && isCount(nodes);
    const { bucket } = values;
    return fits && nodes <= NODES_MAX && (nodes > 1 || !bucket)
      ? { percent, seed, nodes, bucket }
      : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
