/** The program: finds the command of a command line, runs it, and turns expected errors into sentences and exit codes. */
import { DamagedRow, JournalTooNew } from '../actors/runtime/journal/port.ts';
import { LogLost, NameTaken } from '../actors/runtime/replication/port.ts';
import { FolderInUse, FolderUnusable, JournalUnusable } from '../bootstrap/data-directory.ts';
import { JournalPresent, JournalSound } from '../bootstrap/journal.ts';
import { UsageError } from '../config/load.ts';
import { SealKeyUnusable } from '../io/apps/api-keys.ts';
import { ClusterMisconfigured, ClusterUnusable } from '../io/cluster/failures.ts';
import { ListenError } from '../io/http/listen/free-port.ts';
import { HttpLibraryUnusable } from '../io/http/listen/library.ts';
import { COMMANDS, type CommandName, helpText } from './commands.ts';
import { EXIT, end, endWithFaults, NoGateway, print, VERSION } from './output.ts';

/** Flags that were commands of their own before there were any. */
const FORMER_FLAGS: Readonly<Record<string, CommandName>> = {
  '--check-config': 'check-config',
  '--version': 'version',
};

/** Runs one command line, the program's name left out. Ends the process. */
export async function run(args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) {
    print(helpText(VERSION));
    return;
  }
  const { name, rest } = commandOf(args);
  try {
    await COMMANDS[name].run(rest);
  } catch (error) {
    endFor(error);
  }
}

/** Without a command the program serves, as it did before there were any. */
function commandOf(args: readonly string[]): { name: CommandName; rest: readonly string[] } {
  const [first, ...others] = args;
  if (isCommand(first)) return { name: first, rest: others };
  const flag = args.find((each) => FORMER_FLAGS[each] !== undefined);
  const name = flag === undefined ? undefined : FORMER_FLAGS[flag];
  if (name !== undefined) return { name, rest: args.filter((each) => each !== flag) };
  if (first !== undefined && !first.startsWith('-'))
    end(EXIT.usage, `gatehouse: there is no command ${JSON.stringify(first)}; "help" lists them`);
  return { name: 'serve', rest: args };
}

function isCommand(name: string | undefined): name is CommandName {
  return name !== undefined && Object.hasOwn(COMMANDS, name);
}

type ErrorKind = abstract new (...given: never[]) => Error;

/** Expected errors by exit code; the message is the sentence. */
const ENDINGS: readonly (readonly [code: number, kinds: readonly ErrorKind[]])[] = [
  [EXIT.usage, [UsageError, JournalPresent, JournalSound]],
  [EXIT.unavailable, [ListenError, NoGateway]],
  [EXIT.storage, [JournalUnusable, JournalTooNew, FolderInUse, ClusterUnusable, LogLost, NameTaken]],
  [EXIT.configuration, [HttpLibraryUnusable]],
];

/** Ends the process for an expected error, and throws any other. */
function endFor(error: unknown): never {
  if (error instanceof FolderUnusable) endWithFaults([{ path: error.key, message: error.message }]);
  if (error instanceof ClusterMisconfigured) endWithFaults([{ path: error.key, message: error.message }]);
  if (error instanceof SealKeyUnusable) endWithFaults([{ path: 'Secrets.sealKey', message: error.message }]);
  if (error instanceof DamagedRow) end(EXIT.storage, `gatehouse: ${error.message}; restore a backup`);
  const code = ENDINGS.find(([, kinds]) => kinds.some((kind) => error instanceof kind))?.[0];
  if (code !== undefined && error instanceof Error) end(code, `gatehouse: ${error.message}`);
  throw error;
}
