/** The command `serve`: starts the gateway, prints where it listens, handles signals. */
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { Diverged, LogLost, NameTaken } from '../actors/runtime/replication/port.ts';
import type { Assembly } from '../bootstrap/gateway.ts';
import { exposureWarnings } from '../config/exposure.ts';
import type { Flags } from '../config/load.ts';
import { SECOND_MS } from '../domain/time.ts';
import { ClusterUnusable } from '../io/cluster/failures.ts';
import { createLog, type Log } from '../io/observability/log.ts';
import { createSandboxThread } from '../sandbox/start.ts';
import { banner } from './banner.ts';
import { EXIT, load, loadOrEnd, print, VERSION } from './output.ts';
import { endProcess, limitUntilEnd } from './process-end.ts';

/** Time from the signal to the end of the process, whatever hangs. */
const STOP_LIMIT_MS = 20_000;
/** The limit is reached so much earlier, because threads and timers start late on a busy machine. */
const STOP_SPARE_MS = 2_000;

/** A start in which the event loop is held so long, and no row of the journal is read, ends. */
const START_SILENT_S = 60;

/** Commands that serve nothing end in half the time without it. Required, as main.cts says. */
function loadGateway(): typeof import('../bootstrap/gateway.ts') {
  return createRequire(import.meta.url)(
    '../bootstrap/gateway.js',
  ) as typeof import('../bootstrap/gateway.ts');
}

export async function serve(flags: Flags): Promise<void> {
  const configuration = loadOrEnd(flags);
  const log = createLog(configuration.log);
  const running: { gateway?: Assembly } = {};
  handleSignals(running, log);
  const progress = limitStart();
  const sandboxThread = configuration.sandbox ? createSandboxThread() : undefined;
  const { assemble } = loadGateway();
  const gateway = await assemble(configuration, {
    version: VERSION,
    log,
    newJournal: flags.newJournal,
    sandboxThread,
    readAgain: () => load(flags),
    onProgress: progress.beat,
    onFatal(error) {
      log.write(isOfCluster(error) ? 'nodeEnded' : 'journalFailed', { err: error });
      endProcess(EXIT.storage);
    },
  });
  running.gateway = gateway;
  progress.end();
  for (const warning of exposureWarnings(configuration)) log.write('unsafeDeployment', warning);
  const { url, internal, sandbox, home, setupAddress, httpLibrary } = gateway;
  const isTerminal = process.stdout.isTTY === true;
  // A person at a terminal reads it in the banner.
  if (!isTerminal || process.stderr.isTTY !== true) log.write('httpLibrary', { version: httpLibrary });
  // This line is for programs; a person reads the addresses below.
  if (!isTerminal)
    print(`listening ${JSON.stringify({ url, internal, ...(sandbox === undefined ? {} : { sandbox }) })}\n`);
  const dataPath = resolve(configuration.dataPath);
  const { pid } = process;
  const library = `Node ${process.versions.node}, uWebSockets.js ${httpLibrary}`;
  print(banner({ version: VERSION, pid, library, url, home, setupAddress, internal, sandbox, dataPath }));
}

/** True if the fault is that of the other nodes or of the log, and not that of this machine. */
function isOfCluster(error: Error): boolean {
  return [LogLost, Diverged, NameTaken, ClusterUnusable].some((kind) => error instanceof kind);
}

/** A damaged page may hold the main thread within the engine for ever: the next start checks the pages first. */
function limitStart(): ReturnType<typeof limitUntilEnd> {
  const line = `gatehouse: the start made no progress for ${START_SILENT_S} s; the next one checks the journal`;
  const limit = limitUntilEnd({ intervalMs: SECOND_MS, silentMax: START_SILENT_S, line, code: EXIT.storage });
  const timer = setInterval(limit.beat, SECOND_MS).unref();
  return {
    beat: limit.beat,
    end() {
      clearInterval(timer);
      limit.end();
    },
  };
}

/**
 * Bounds the stop by this thread, with its log and the listeners of the end; a second later by one that nothing holds.
 */
function boundStop(gateway: Assembly, log: Log): void {
  const limitMs = STOP_LIMIT_MS - STOP_SPARE_MS;
  const line = `gatehouse: the stop did not end in ${STOP_LIMIT_MS / 1000} s`;
  limitUntilEnd({ intervalMs: limitMs + STOP_SPARE_MS / 2, silentMax: 1, line, code: EXIT.storage });
  setTimeout(() => {
    log.write('stopCut', { parts: gateway.degraded(), limitMs });
    endProcess(EXIT.storage);
  }, limitMs);
}

/** Set before anything is started: until there is a gateway a stop has nothing to finish. */
function handleSignals(running: { gateway?: Assembly }, log: Log): void {
  let stopping = false;
  const stop = (signal: string) => {
    const { gateway } = running;
    // A second signal means it: whatever is still under way was not acknowledged.
    if (stopping || gateway === undefined) endProcess(EXIT.done);
    stopping = true;
    log.write('stopping', { signal });
    boundStop(gateway, log);
    gateway.stop().then(
      () => process.exit(EXIT.done),
      (error: unknown) => {
        log.write('stopFailed', { err: error });
        endProcess(EXIT.storage);
      },
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  process.on('SIGHUP', () => running.gateway?.reread());
}
