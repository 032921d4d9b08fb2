/**
 * `npm run tour [-- --target http://localhost:8080]`: shows every request and answer from sign-up with a software key to
 * tool calls of an agent. Runs against a given gateway, or against its own, which it also kills and restarts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pickPort } from '../kit/free-port.ts';
import { launch, type RunningGateway } from '../kit/launch.ts';
import { Guide, StepFailed } from './guide.ts';
import { afterRestart, pathOfAnAgent } from './path.ts';

const USAGE = 'usage: npm run tour [-- --target URL]\n';
const EXIT_FAILED = 1;
const EXIT_USAGE = 64;

type Write = (text: string) => void;

function guideTo(url: string, write: Write): Guide {
  return new Guide(url, write, process.stdout.isTTY === true && process.stdout.hasColors());
}

async function tourOf(target: string, write: Write): Promise<number> {
  const guide = guideTo(target, write);
  write(`A tour of ${target}\n`);
  await pathOfAnAgent(guide);
  return guide.steps;
}

/** Its own gateway: free ports, a temporary data folder, the sandbox modules. */
async function tourOfOwn(write: Write): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-tour-'));
  let gateway: RunningGateway | undefined;
  try {
    // Named, not picked by the system: a socket bound to port 0 may not be bound again right after a kill.
    const port = await pickPort();
    gateway = await launch({ dataPath: folder, args: ['--sandbox'], port });
    const guide = guideTo(gateway.url, write);
    write(`A tour of a gateway of its own on ${gateway.url}, data in ${folder}\n`);
    const agent = await pathOfAnAgent(guide);
    guide.title('Kill it without a warning, and start it again on the same data');
    await gateway.kill();
    guide.note('kill -9 sent, the process is gone');
    const startMs = performance.now();
    gateway = await launch({ dataPath: folder, args: ['--sandbox'], port });
    guide.good(`listens again on ${gateway.url} after ${Math.round(performance.now() - startMs)} ms`);
    await afterRestart(guide, agent);
    return guide.steps;
  } finally {
    await gateway?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function targetOf(args: readonly string[]): string | undefined | null {
  try {
    const { values } = parseArgs({ args: [...args], options: { target: { type: 'string' } } });
    if (values.target === undefined) return undefined;
    return URL.canParse(values.target) ? new URL(values.target).origin : null;
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** The exit code. `warn` gets what is wrong with the arguments. */
export async function runTour(args: readonly string[], write: Write, warn: Write): Promise<number> {
  const target = targetOf(args);
  if (target === null) {
    warn(USAGE);
    return EXIT_USAGE;
  }
  try {
    const steps = await (target === undefined ? tourOfOwn(write) : tourOf(target, write));
    write(`\nAll ${steps} steps came out as they should.\n`);
    return 0;
  } catch (error) {
    const failed =
      error instanceof StepFailed || (error instanceof Error && /did not start/.test(error.message));
    if (!failed) throw error;
    write(`\nThe tour ends here. ${error.message}\n`);
    return EXIT_FAILED;
  }
}

if (process.argv[1]?.endsWith('tour.js')) {
  const to = (stream: NodeJS.WriteStream) => (text: string) => void stream.write(text);
  process.exitCode = await runTour(process.argv.slice(2), to(process.stdout), to(process.stderr));
}
