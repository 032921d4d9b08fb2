/** Starts the program as a child process that ends with this one: free ports, its own data folder, an environment without the test runner's. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ENTRY = fileURLToPath(new URL('../src/main.cjs', import.meta.url));
/**
 * Arguments of a Node that is not to outlive this process. Its descriptor 3 must be a pipe: `stdio: [a, b, c, 'pipe']`.
 */
export const TIED = ['--require', fileURLToPath(new URL('./tied.cjs', import.meta.url))] as const;
/** Names a module that programs load before their own: it observes them (test/evidence). */
export const PRELOAD_VARIABLE = 'GATEHOUSE_TEST_PRELOAD';
/** Signals of a fault of the process itself. */
const CRASHES: ReadonlySet<string | null> = new Set([
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGILL',
  'SIGSEGV',
  'SIGTRAP',
]);
/** A start that takes longer than this hangs, on a busy machine too. */
const START_TIMEOUT_MS = 180_000;

/** Settings without limits of calls, for programs that look at something else. The limiter stays in the path. */
export const NO_LIMITS = {
  ApiRPSLimit: 0,
  IpRPSLimit: 0,
  PubKeyApiRPSLimit: 0,
  SessionApiRPSLimit: 0,
  UserApiRPSLimit: 0,
  McpApiRPSLimit: 0,
  UnknownKeyFailuresPerMinute: 0,
};

/** Limits above what any test needs: the limiter counts, and its headers are sent. */
export const HIGH_LIMITS = {
  ApiRPSLimit: 100_000,
  IpRPSLimit: 100_000,
  PubKeyApiRPSLimit: 100_000,
  SessionApiRPSLimit: 100_000,
  UserApiRPSLimit: 100_000,
  McpApiRPSLimit: 100_000,
};

/** No limits of calls, bandwidth and drafts. */
export const NO_FILE_LIMITS = {
  ...NO_LIMITS,
  FileUploadBytesPerSecond: 0,
  FileDownloadBytesPerSecond: 0,
  DraftsPerUser: 1000,
};

export interface LaunchOptions {
  /** Data folder; a temporary one that `stop` removes unless given. */
  readonly dataPath?: string;
  /** Written to a file and passed with --config. */
  readonly configuration?: object;
  readonly args?: readonly string[];
  /** Before the options; without it none is named. */
  readonly command?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Without it the ports are picked by the system. */
  readonly port?: number;
  readonly nodeArgs?: readonly string[];
  /** A file that takes standard error, as a service manager would, instead of this process: for load. */
  readonly logFile?: string;
  /** Shell commands that the program is started after, in the same process: limits of the system. */
  readonly shell?: string;
  /** Out of the reach of a terminal's Ctrl-C: this process ends it. */
  readonly detached?: boolean;
  /** Another built checkout, whose program is started instead of this one's. */
  readonly checkout?: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface RunningGateway {
  readonly url: string;
  readonly internal: string;
  readonly sandbox: string | undefined;
  readonly dataPath: string;
  readonly process: ChildProcess;
  readonly exited: Promise<Exit>;
  /** Everything printed so far. */
  readonly output: () => { stdout: string; stderr: string };
  /** Resolves once standard error holds a match. */
  said(word: RegExp): Promise<void>;
  /** SIGKILL, as a power cut of the process; resolves when it is gone. Keeps the data. */
  kill(): Promise<void>;
  /** SIGTERM and wait; removes a temporary data folder. Rejects with the log of a program that crashed. */
  stop(): Promise<Exit>;
}

/** The environment of a user's shell: without what a test runner or this process's debugger put in. */
export function plainEnvironment(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name, value]) =>
      value !== undefined && name !== 'NODE_OPTIONS' && !/^(_?TAP|GATEHOUSE_|NODE_V8_)/.test(name),
  );
  return { ...Object.fromEntries(kept), ...extra } as Record<string, string>;
}

/** The program of a built checkout; this one's without a folder. */
export function entryOf(checkout?: string): string {
  return checkout === undefined ? ENTRY : join(checkout, 'build/src/main.cjs');
}

/** A finished run: for the commands that end by themselves and for starts that must fail. */
export async function runToEnd(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  checkout?: string,
): Promise<Exit & { stdout: string; stderr: string }> {
  const { child, exited, output } = spawnProgram([], args, { environment, checkout });
  child.stdin?.end();
  const exit = await exited;
  return { ...exit, ...output() };
}

function spawnProgram(
  nodeArgs: readonly string[],
  args: readonly string[],
  {
    environment = {},
    logFile,
    checkout,
    shell,
    detached = false,
  }: {
    [Key in 'environment' | 'logFile' | 'checkout' | 'shell' | 'detached']?: LaunchOptions[Key] | undefined;
  },
) {
  const log = logFile === undefined ? 'pipe' : openSync(logFile, 'a');
  const preload = process.env[PRELOAD_VARIABLE];
  const observed = preload === undefined ? [] : ['--require', preload];
  const command = [process.execPath, ...TIED, ...observed, ...nodeArgs, entryOf(checkout), ...args];
  const [program = '', ...rest] =
    shell === undefined ? command : ['/bin/sh', '-c', `${shell}; exec "$0" "$@"`, ...command];
  const child = spawn(program, rest, {
    env: plainEnvironment(environment),
    stdio: ['pipe', 'pipe', log, 'pipe'],
    detached,
  });
  if (typeof log === 'number') closeSync(log);
  let stdout = '';
  let stderr = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exited = new Promise<Exit>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  );
  return { child, exited, output: () => ({ stdout, stderr }) };
}

/** Resolves when the program says that it listens; rejects with what it printed when it ends or hangs before. */
export async function launch(options: LaunchOptions = {}): Promise<RunningGateway> {
  const temporary = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  const dataPath = options.dataPath ?? join(temporary, 'data');
  const command = options.command === undefined ? [] : [options.command];
  const args = [...command, '--data', dataPath, '--port', String(options.port ?? 0), '--internal-port', '0'];
  if (options.configuration !== undefined) {
    const file = join(temporary, 'gatehouse.json');
    writeFileSync(file, JSON.stringify(options.configuration));
    args.push('--config', file);
  }
  args.push(...(options.args ?? []));
  const { child, exited, output } = spawnProgram(options.nodeArgs ?? [], args, options);
  const cleanUp = () => rmSync(temporary, { recursive: true, force: true });
  const addresses = await listening(child, exited, output);
  return {
    url: addresses.url,
    internal: addresses.internal,
    sandbox: addresses.sandbox,
    dataPath,
    process: child,
    exited,
    output,
    said: (word) =>
      new Promise((resolve) => {
        const check = () => {
          if (!word.test(output().stderr)) return;
          child.stderr?.off('data', check);
          resolve();
        };
        child.stderr?.on('data', check);
        check();
      }),
    async kill() {
      child.kill('SIGKILL');
      await exited;
      if (options.dataPath !== undefined) cleanUp();
    },
    async stop() {
      child.kill('SIGTERM');
      const exit = await exited;
      cleanUp();
      if (CRASHES.has(exit.signal))
        throw new Error(`the gateway ended by ${exit.signal}\n${output().stderr}`);
      return exit;
    },
  };
}

/** The same for one test, with which the program stops. */
export async function launchFor(
  t: { teardown(end: () => unknown): unknown },
  options: LaunchOptions = {},
): Promise<RunningGateway> {
  const gateway = await launch(options);
  t.teardown(() => gateway.stop());
  return gateway;
}

interface Addresses {
  url: string;
  internal: string;
  sandbox?: string;
}

function listening(
  child: ChildProcess,
  exited: Promise<Exit>,
  output: () => { stdout: string; stderr: string },
): Promise<Addresses> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      const { stdout, stderr } = output();
      child.kill('SIGKILL');
      reject(new Error(`the gateway did not start: ${reason}\n${stdout}${stderr}`));
    };
    const timer = setTimeout(() => fail(`no word after ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
    exited.then(({ code, signal }) => {
      clearTimeout(timer);
      fail(`it ended with ${code ?? signal}`);
    }, reject);
    child.stdout?.on('data', () => {
      const line = /^listening (\{.*\})$/m.exec(output().stdout);
      if (line?.[1] === undefined) return;
      clearTimeout(timer);
      resolve(JSON.parse(line[1]) as Addresses);
    });
  });
}
