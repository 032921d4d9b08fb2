/** The program: commands, exit codes, signals. What it is made of is put together in bootstrap/gateway.ts. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { DamagedRow, JournalTooNew } from '../actors/runtime/journal/port.ts';
import { FolderInUse, FolderUnusable, JournalUnusable } from '../bootstrap/data-directory.ts';
import type { Assembly } from '../bootstrap/gateway.ts';
import { backUp, checkData, goBackACommit, JournalPresent, JournalSound } from '../bootstrap/journal.ts';
import { checkCatalog } from '../bootstrap/modules.ts';
import { checkTls } from '../bootstrap/tls.ts';
import { exposureWarnings, productionFaults } from '../config/exposure.ts';
import {
  type ConfigurationResult,
  type Flags,
  loadConfiguration,
  type PlacedFault,
  parseFlags,
  processEnvironment,
  UsageError,
} from '../config/load.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { SealKeyUnusable } from '../io/apps/api-keys.ts';
import { HttpLibraryUnusable } from '../io/http/library.ts';
import { ListenError } from '../io/http/listen/free-port.ts';
import { createLog, type Log } from '../io/observability/log.ts';
import { banner } from './banner.ts';
import { generateKey } from './keygen.ts';

/** Exit codes. */
const EXIT = { done: 0, usage: 64, portTaken: 69, storage: 70, configuration: 78 } as const;

const { version: VERSION } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string };

/** Of `check` alone. */
const USE_OLDER_COMMIT = '--use-older-commit';

const USAGE = `gatehouse ${VERSION}: one public entry point for backend modules

  main.cjs [options]              serve
  main.cjs keygen                 print a new key pair as JSON
  main.cjs backup DIR [options]   copy the journal while the gateway runs
  main.cjs check [options]        read all of the journal, a line for each fault; exit code 70 when there is one

  --config FILE         configuration, JSON with comments; without it: sandbox modules and defaults
  --data DIR            folder of the journal and of files
  --port N              public port; 0 picks a free one
  --internal-port N     port of /metrics and /health in full; 0 picks a free one
  --sandbox             simulated modules for those that have no address
  --use-older-commit    with check: if the newest commit is damaged, return to the commit before it
  --new-journal         start with an empty journal if the data folder has lost its journal
  --check-config        check the configuration and exit
  -h, --help            this text
`;

function print(text: string): void {
  process.stdout.write(text);
}

/** Writes one plain line to standard error and ends the program. */
function end(code: number, message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}

function endWithFaults(faults: readonly PlacedFault[]): never {
  const lines = faults.map(
    ({ path, message, place }) =>
      `configuration: ${path === '' ? '' : `${path}: `}${message}${place === undefined ? '' : ` (${place})`}`,
  );
  return end(EXIT.configuration, lines.join('\n'));
}

/** Runs one command line, the program's name left out. Ends the process. */
export async function run(args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) {
    print(USAGE);
    return;
  }
  const [command, ...rest] = args;
  if (command === 'keygen' && rest.length === 0) {
    print(`${JSON.stringify(generateKey())}\n`);
    return;
  }
  try {
    if (command === 'backup') await runBackup(rest);
    else if (command === 'check') await runCheck(rest);
    else await serve(parseFlags(args));
  } catch (error) {
    if (error instanceof UsageError) end(EXIT.usage, `gatehouse: ${error.message}`);
    if (error instanceof ListenError) end(EXIT.portTaken, `gatehouse: ${error.message}`);
    if (error instanceof FolderUnusable) endWithFaults([{ path: error.key, message: error.message }]);
    if (error instanceof HttpLibraryUnusable) end(EXIT.configuration, `gatehouse: ${error.message}`);
    if (error instanceof SealKeyUnusable)
      endWithFaults([{ path: 'Secrets.sealKey', message: error.message }]);
    if (error instanceof JournalPresent || error instanceof JournalSound)
      end(EXIT.usage, `gatehouse: ${error.message}`);
    if (error instanceof JournalUnusable) end(EXIT.storage, `gatehouse: ${error.message}`);
    if (error instanceof DamagedRow) end(EXIT.storage, `gatehouse: ${error.message}; restore a backup`);
    if (error instanceof JournalTooNew) end(EXIT.storage, `gatehouse: ${error.message}`);
    if (error instanceof FolderInUse) end(EXIT.storage, `gatehouse: ${error.message}`);
    throw error;
  }
}

/** Schema, values, certificates and custom tools are checked together, so that one start reports all errors. */
function load(flags: Flags): ConfigurationResult {
  const production = (file: unknown, sandbox: boolean) => productionFaults(file, sandbox && !flags.sandbox);
  return loadConfiguration(flags, processEnvironment(), [checkTls, checkCatalog, production]);
}

function loadOrEnd(flags: Flags): Configuration {
  const result = load(flags);
  return result.ok ? result.configuration : endWithFaults(result.faults);
}

async function runBackup(args: readonly string[]): Promise<void> {
  const [target, ...rest] = args;
  if (target === undefined || target.startsWith('-'))
    throw new UsageError('backup needs a folder: backup DIR');
  const { dataPath } = loadOrEnd(parseFlags(rest));
  await backUp(dataPath, target);
  print(`backup written to ${target}\n`);
}

async function runCheck(args: readonly string[]): Promise<void> {
  const goesBack = args.includes(USE_OLDER_COMMIT);
  const { dataPath } = loadOrEnd(parseFlags(args.filter((each) => each !== USE_OLDER_COMMIT)));
  if (goesBack) print(`${await goBackACommit(dataPath, Date.now())}\n`);
  const { sound } = await checkData(dataPath, (line) => print(`${line}\n`));
  if (!sound) process.exitCode = EXIT.storage;
}

/** Commands that serve nothing end in half the time without it. Required, as main.cts says. */
function loadGateway(): typeof import('../bootstrap/gateway.ts') {
  return createRequire(import.meta.url)(
    '../bootstrap/gateway.js',
  ) as typeof import('../bootstrap/gateway.ts');
}

async function serve(flags: Flags): Promise<void> {
  const configuration = loadOrEnd(flags);
  if (flags.checkConfig) {
    print('configuration: no faults\n');
    return;
  }
  const log = createLog();
  const running: { gateway?: Assembly } = {};
  handleSignals(running, log);
  const { assemble } = loadGateway();
  const gateway = await assemble(configuration, {
    version: VERSION,
    log,
    newJournal: flags.newJournal,
    readAgain: () => load(flags),
    onFatal(error) {
      log.write('journalFailed', { err: error });
      process.exit(EXIT.storage);
    },
  });
  running.gateway = gateway;
  for (const warning of exposureWarnings(configuration)) log.write('unsafeDeployment', warning);
  const { url, internal, sandbox, home, setupAddress } = gateway;
  print(`listening ${JSON.stringify({ url, internal, ...(sandbox === undefined ? {} : { sandbox }) })}\n`);
  const { dataPath } = configuration;
  const { pid } = process;
  print(banner({ version: VERSION, pid, url, home, setupAddress, internal, sandbox, dataPath }));
}

/** Set before anything is started: until there is a gateway a stop has nothing to finish. */
function handleSignals(running: { gateway?: Assembly }, log: Log): void {
  let stopping = false;
  const stop = (signal: string) => {
    const { gateway } = running;
    // A second signal means it: whatever is still under way was not acknowledged.
    if (stopping || gateway === undefined) process.exit(EXIT.done);
    stopping = true;
    log.write('stopping', { signal });
    gateway.stop().then(
      () => process.exit(EXIT.done),
      (error: unknown) => {
        log.write('stopFailed', { err: error });
        process.exit(EXIT.storage);
      },
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  process.on('SIGHUP', () => running.gateway?.reread());
}
