/** Child processes of a run: the load generator, floors, peers and backends. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from '../../kit/launch.ts';
import type { LoadOrder, LoadPlan, LoadReport } from '../load/plan.ts';

const START_TIMEOUT_MS = 15_000;
/** Beyond the planned time, before a silent generator is given up. */
const SILENCE_MS = 20_000;

export interface Server {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Generator {
  /** Once, over connections of its own. */
  run(plan: LoadPlan): Promise<LoadReport>;
  /** Connections that stay open until the generator stops. */
  open(plan: LoadPlan): Promise<OpenLoad>;
  stop(): Promise<void>;
}

/** One of several loads that take turns. */
export interface OpenLoad {
  /** Sends for so long and until all is answered; `requests` replace those so far. */
  round(durationMs: number, requests?: readonly string[]): Promise<LoadReport>;
}

export interface Worker {
  readonly pid: number;
  ask<Answer>(order: object): Promise<Answer>;
  stop(): Promise<void>;
}

/** Starts `bench/servers/<name>`, which sends `{url}` to its parent when it listens. */
export async function startServer(name: string, args: readonly string[] = []): Promise<Server> {
  const { child, url } = await startChild(name, args);
  return { url, pid: child.pid ?? 0, stop: () => stopChild(child) };
}

/** A server of ours or a peer's that answers each message with one, in place of listening. */
export async function startWorker(
  kind: 'server' | 'peer',
  name: string,
  args: readonly string[] = [],
): Promise<Worker> {
  const file =
    kind === 'server' ? `../subjects/servers/${name}.js` : `../../../bench/subjects/peers/${name}.js`;
  const { child } = await started(name, forkFile(file, args));
  return {
    pid: child.pid ?? 0,
    ask: (order) =>
      new Promise((resolve, reject) => {
        const onExit = (code: number | null) => reject(new Error(`${name} ended with ${code}`));
        child.once('exit', onExit);
        child.once('message', (answer: unknown) => {
          child.off('exit', onExit);
          resolve(answer as never);
        });
        // Without a listener of its own a channel that is closed throws from the child, past every caller.
        child.send(order, (error) => error !== null && reject(error));
      }),
    stop: () => stopChild(child),
  };
}

/** Starts `bench/subjects/peers/<name>.js`, which does the same. It is run from the source, with packages of its own. */
export async function startPeer(name: string, args: readonly string[] = []): Promise<Server> {
  const { child, url } = await started(name, forkFile(`../../../bench/subjects/peers/${name}.js`, args));
  return { url, pid: child.pid ?? 0, stop: () => stopChild(child) };
}

export async function startChild(
  name: string,
  args: readonly string[],
): Promise<{ child: ChildProcess; url: string }> {
  return await started(name, forkFile(`../subjects/servers/${name}.js`, args));
}

async function started(name: string, child: ChildProcess): Promise<{ child: ChildProcess; url: string }> {
  const url = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${name} did not start`)), START_TIMEOUT_MS);
    child.once('message', (message: { url: string }) => {
      clearTimeout(timer);
      resolve(message.url);
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`${name} ended with ${code}`));
    });
  });
  return { child, url };
}

export function startGenerator(): Generator {
  const child = forkFile('../load/load-process.js', []);
  const ask = <Answer>(order: LoadOrder, durationMs: number): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => settle(() => reject(new Error('the load generator is silent'))),
        durationMs + SILENCE_MS,
      );
      const onExit = (code: number | null) =>
        settle(() => reject(new Error(`the load generator ended with ${code}`)));
      const onMessage = (answer: unknown) => settle(() => resolve(answer as Answer));
      const settle = (act: () => void) => {
        clearTimeout(timer);
        child.off('message', onMessage).off('exit', onExit);
        act();
      };
      child.on('message', onMessage).on('exit', onExit);
      child.send(order, (error) => error !== null && settle(() => reject(error)));
    });
  return {
    run: (plan) => ask({ kind: 'run', plan }, plan.leadInMs + plan.durationMs),
    async open(plan) {
      const load = await ask<number>({ kind: 'open', plan }, 0);
      let sent = plan.requests;
      return {
        round(durationMs, requests = sent) {
          const changed = requests === sent ? {} : { requests };
          sent = requests;
          return ask({ kind: 'round', load, durationMs, ...changed }, durationMs);
        },
      };
    },
    stop: () => stopChild(child),
  };
}

function forkFile(file: string, args: readonly string[]): ChildProcess {
  return fork(fileURLToPath(new URL(file, import.meta.url)), [...args], {
    env: plainEnvironment(),
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
}

export function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
