/**
 * Power cuts of a traced program: the disk rebuilt as it may be at moments picked by a seed, and what a journal makes
 * of it held against what the program had acknowledged by then.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from '../../../kit/launch.ts';
import { runSync } from '../../../kit/run-sync.ts';
import { seededNumbers } from '../actors/actors.ts';
import { type DiskOptions, TracedDisk } from './disk.ts';
import { COPY, type Ledgers } from './ledgers.ts';
import { LATER_OPERATION, type Reading } from './reader.ts';
import { type Moment, parseTrace, straceTo, stringsOf } from './trace.ts';

const WRITER = fileURLToPath(new URL('./writer.js', import.meta.url));
const READER = fileURLToPath(new URL('./reader.js', import.meta.url));
/** The engine's lock files: created by the process that opens a journal without a lock. */
export const LOCKS = /\/lock\.mdb$|-lock$/;
const LOCK_BYTES = 8_192;
/** A journal that takes longer has hung: a broken tree may lead the engine round and round. */
const READ_MAX_MS = 30_000;
/** Moments from the making of the folder to the first turns, about. */
const MAKING_MOMENTS = 120;

export interface Traced {
  readonly moments: readonly Moment[];
  /** The folder as it lay on the disk of the program. */
  readonly folder: string;
  /** Its files when the program had ended, by path. */
  readonly left: ReadonlyMap<string, Buffer>;
}

/** Runs the writer under strace to its end, in a folder that it makes within `scratch`. */
export function traceWriter(scratch: string, turns: number, ...fault: 'early'[]): Traced {
  const folder = join(scratch, 'journal');
  const moments = traceProgram(scratch, [WRITER, folder, String(turns), ...fault]);
  const files = [join(folder, 'data.mdb'), join(folder, COPY, 'data.mdb')];
  const left = new Map(files.map((file) => [file, readFileSync(file)]));
  return { moments, folder, left };
}

/** Runs a program of Node.js under strace to its end; its calls. The trace is kept in `scratch`. */
export function traceProgram(scratch: string, program: readonly string[]): Moment[] {
  const log = join(scratch, 'trace');
  const [strace = '', ...options] = straceTo(log);
  const { status, stderr } = runSync(strace, [...options, process.execPath, ...program], {
    env: plainEnvironment({ UV_USE_IO_URING: '0' }),
  });
  if (status !== 0) throw new Error(`the writer ended with ${status}: ${stderr}`);
  return parseTrace(readFileSync(log, 'latin1'));
}

/** The files as the calls leave them in the end: those of the program, or a call was missed. */
export function rebuilt({ moments, folder }: Traced): Map<string, Buffer> {
  const disk = new TracedDisk({ folder, ignored: LOCKS });
  for (const moment of moments) disk.take(moment);
  return disk.whole();
}

/** The files that are sure to be there when the power is cut after the last call. */
export function durable({ moments, folder }: Traced): Map<string, Buffer> {
  const disk = new TracedDisk({ folder, ignored: LOCKS });
  for (const moment of moments) disk.take(moment);
  return disk.afterCut(() => 0);
}

export interface CutsReport {
  readonly cuts: number;
  /** Cuts after which there was no file, and those that found part of the turns. */
  readonly without: number;
  readonly amidst: number;
  /** `moment N of seed S: what was promised and not kept`. */
  readonly faults: readonly string[];
}

/**
 * Cuts the power so many times; a disk with a planted fault is given by `options`. `untilFault`: no more cuts once a fault
 * is found, because a broken journal may use all the time that a read has.
 */
export async function cutPower(
  traced: Traced,
  cuts: number,
  seed: number,
  { untilFault = false, ...options }: Pick<DiskOptions, 'syncsNothing'> & { untilFault?: boolean } = {},
): Promise<CutsReport> {
  const { moments, folder } = traced;
  const random = seededNumbers(seed);
  const first = moments.findIndex(({ call }) => stringsOf(call)[0]?.toString() === folder);
  // A fifth of them while the journal is made.
  const picked = Array.from({ length: cuts }, (_, index) => {
    const span = index % 5 === 0 ? Math.min(MAKING_MOMENTS, moments.length - first) : moments.length - first;
    return first + Math.floor(random() * span);
  });
  const reader = new Reader();
  const disk = new TracedDisk({ folder, ignored: LOCKS, ...options });
  const final = await reader.read(within(rebuilt(traced), folder), random);
  const report = {
    cuts,
    without: 0,
    amidst: 0,
    faults: [...(final.found?.faults ?? [`at the end: ${final.error}`])],
  };
  const acknowledged: [id: string, operation: number][] = [];
  let done = 0;
  for (const at of picked.sort((a, b) => a - b)) {
    for (; done <= at; done += 1) {
      const moment = moments[done] as Moment;
      disk.take(moment);
      if (moment.phase === 'begin') acknowledged.push(...acknowledgedBy(moment));
    }
    const files = within(disk.afterCut(random), folder);
    if (files.size === 0) report.without += 1;
    const reading = await reader.read(files, random);
    const missing = faultsOf(reading, acknowledged, final.found?.states ?? {});
    if (Object.values(reading.found?.states ?? {}).some(({ applied }) => applied.length > 0))
      report.amidst += 1;
    report.faults.push(...missing.map((fault) => `moment ${at} of seed ${seed}: ${fault}`));
    if (untilFault && report.faults.length > 0) break;
  }
  await reader.close();
  return report;
}

/** Files that lie in the folder itself, by name. */
function within(files: ReadonlyMap<string, Buffer>, folder: string): Map<string, Buffer> {
  const own = [...files].filter(([path]) => dirname(path) === folder);
  return new Map(own.map(([path, bytes]) => [basename(path), bytes]));
}

/** Returns the output of the program at this moment. */
export function printedBy({ call }: Moment): string {
  return call.name === 'write' && call.args.startsWith('1,') ? String(stringsOf(call)[0]) : '';
}

/** The words may have left as soon as the call began. */
function acknowledgedBy(moment: Moment): [id: string, operation: number][] {
  return [...printedBy(moment).matchAll(/^acknowledged (\w+) (\d+)$/gm)].map(([, id = '', operation]) => [
    id,
    Number(operation),
  ]);
}

function faultsOf(
  { error, found, later }: Reading,
  acknowledged: readonly (readonly [id: string, operation: number])[],
  final: Ledgers,
): string[] {
  if (found === undefined || later === undefined) return [`does not open: ${error}`];
  const faults = [...found.faults, ...later.faults];
  for (const [id, operation] of acknowledged)
    if (found.states[id]?.applied.includes(operation) !== true)
      faults.push(`${operation} was acknowledged by ${id} and is lost`);
  for (const [index, [id, state]] of Object.entries(found.states).entries()) {
    const whole = final[id];
    for (const list of ['applied', 'sent', 'received'] as const)
      if (String(whole?.[list].slice(0, state[list].length)) !== String(state[list]))
        faults.push(`${id}: ${list} ${state[list]} is no beginning of ${whole?.[list]}`);
    if (String(later.states[id]?.applied) !== String([...state.applied, LATER_OPERATION + index]))
      faults.push(`${id} has taken no more writes: ${later.states[id]?.applied}`);
  }
  return faults;
}

/** The process that opens what is left; another one after each that a journal took along. */
class Reader {
  readonly #scratch = mkdtempSync(join(tmpdir(), 'gatehouse-cut-'));
  #child: ChildProcessByStdio<Writable, Readable, Readable> | undefined;
  #lines: AsyncIterator<string> | undefined;
  /** Complaints of the present child. */
  #complaints = '';

  async read(files: ReadonlyMap<string, Buffer>, random: () => number): Promise<Reading> {
    const folder = mkdtempSync(join(this.#scratch, 'journal-'));
    for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
    // Any state of the lock file: it is never synced.
    const lock = Buffer.alloc(LOCK_BYTES, Math.floor(random() * 256));
    if (random() < 0.5) writeFileSync(join(folder, 'lock.mdb'), lock);
    if (this.#child === undefined) this.#start();
    this.#child?.stdin.write(`${folder}\n`);
    const watchdog = setTimeout(() => this.#child?.kill('SIGKILL'), READ_MAX_MS);
    const line = await this.#lines?.next();
    clearTimeout(watchdog);
    rmSync(folder, { recursive: true });
    if (line?.done === false) return JSON.parse(line.value) as Reading;
    this.#child = undefined;
    return { error: `the journal took the process along: ${this.#complaints}` };
  }

  async close(): Promise<void> {
    const child = this.#child;
    child?.stdin.end();
    const watchdog = setTimeout(() => child?.kill('SIGKILL'), READ_MAX_MS);
    await this.#lines?.next();
    clearTimeout(watchdog);
    rmSync(this.#scratch, { recursive: true });
  }

  #start(): void {
    const child = spawn(process.execPath, [READER], {
      env: plainEnvironment(),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#complaints = '';
    // One that died after its last answer: the line that it does not answer says so.
    child.stdin.on('error', (error) => {
      this.#complaints += error.message;
    });
    child.stderr.on('data', (text: Buffer) => {
      this.#complaints += text;
    });
    this.#child = child;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }
}
