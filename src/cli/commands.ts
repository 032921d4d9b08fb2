/** The table of commands: usage, meaning, options and what each runs. The help is made from it. */
import { folderFaults } from '../bootstrap/data-directory.ts';
import { checkData, goBackACommit } from '../bootstrap/journal.ts';
import { backUp, restore } from '../bootstrap/journal-copy.ts';
import { parseFlags, UsageError } from '../config/load.ts';
import { printedSchema } from '../config/printed-schema.ts';
import { SECOND_MS } from '../domain/time.ts';
import { PROFILE_KINDS, PROFILE_SECONDS_MAX } from '../io/observability/profiles.ts';
import { runCluster } from './cluster.ts';
import { askFolder } from './folder-request.ts';
import { generateKey } from './keygen.ts';
import { runMcpServers } from './mcp-servers.ts';
import { EXIT, loadOrEnd, NoGateway, print, VERSION } from './output.ts';
import { serve } from './serve.ts';
import { showStatus } from './status.ts';

interface Command {
  /** Behind the name; options are listed apart. */
  readonly usage: string;
  readonly help: string;
  /** Keys of `OPTIONS`. */
  readonly options: readonly (keyof typeof OPTIONS)[];
  run(args: readonly string[]): void | Promise<void>;
}

const OPTIONS = {
  '--config FILE': 'configuration, JSON with comments; without it: sandbox modules and defaults',
  '--data DIR': 'folder of the journal and of files',
  '--port N': 'public port; 0 picks a free one, also for --internal-port',
  '--internal-port N': 'port of /metrics and /health in full',
  '--sandbox': 'simulated modules for those that have no address',
  '--new-journal': 'start with an empty journal if the data folder has lost its journal',
  '--check-config': 'the same as the command check-config',
  '--use-older-commit': 'if the newest commit is damaged, return to the commit before it',
  '--json': 'print the status, or the list, in full, as JSON',
  '--seconds N': 'how long the profile samples, 1 to 60; 10 unless given',
  '--module NAME': 'the module of the rows, in Modules',
  '--tag TAG': 'operations with this tag; several times for several tags',
  '--only ID,…': 'operations with these names',
  '--from-database': 'recover: the log in the database counts, not the journal of the data folder',
} as const;
const FOLDER = ['--data DIR', '--config FILE'] as const;

export type CommandName = keyof typeof COMMANDS;

export const COMMANDS = {
  serve: {
    usage: '',
    help: 'serve; the command without a name',
    options: [
      '--config FILE',
      '--data DIR',
      '--port N',
      '--internal-port N',
      '--sandbox',
      '--new-journal',
      '--check-config',
    ],
    run: (args) => serve(parseFlags(args)),
  },
  'check-config': {
    usage: '',
    help: 'check the configuration and start nothing',
    options: [...FOLDER, '--sandbox'],
    run(args) {
      const flags = parseFlags(args);
      loadOrEnd(flags, [(file) => folderFaults(file, flags.data)]);
      print('configuration: no faults\n');
    },
  },
  check: {
    usage: '',
    help: 'read all of the journal, a line for each fault; exit code 70 when there is one',
    options: [...FOLDER, '--use-older-commit'],
    run: runCheck,
  },
  keygen: {
    usage: '',
    help: 'print a new key pair as JSON',
    options: [],
    run(args) {
      refuseMore(args);
      print(`${JSON.stringify(generateKey())}\n`);
    },
  },
  backup: {
    usage: 'DIR',
    help: 'copy the journal while the gateway runs',
    options: FOLDER,
    async run(args) {
      const [target, rest] = folderOf('backup needs a folder: backup DIR', args);
      print(`${await backUp(loadOrEnd(parseFlags(rest)).dataPath, target, Date.now())}\n`);
    },
  },
  restore: {
    usage: 'FROM',
    help: 'copy the journal of a backup into a data folder that has none',
    options: FOLDER,
    async run(args) {
      const [from, rest] = folderOf('restore needs the folder of a backup: restore FROM', args);
      const { dataPath } = loadOrEnd(parseFlags(rest));
      print(`${await restore(from, dataPath)}\n`);
    },
  },
  status: {
    usage: '',
    help: 'ask the internal listener for health; exit code 69 when nothing answers, 70 when unhealthy',
    options: ['--config FILE', '--internal-port N', '--json'],
    run: showStatus,
  },
  profile: {
    usage: 'cpu|heap',
    help: 'a profile of the main thread of the gateway that serves the data folder, for Chrome DevTools',
    options: [...FOLDER, '--seconds N'],
    run: takeProfile,
  },
  admin: {
    usage: 'recover',
    help: 'print a recovery link of the gateway that serves the data folder: one more admin',
    options: FOLDER,
    async run([action, ...rest]) {
      if (action !== 'recover') throw new UsageError('admin takes one action: admin recover');
      const address = await askFolder(loadOrEnd(parseFlags(rest)).dataPath, 'adminRecover');
      print(`admin recovery ${address}\n               (once, within 30 minutes; it makes one more admin)\n`);
    },
  },
  cluster: {
    usage: 'ACTION',
    help: 'import, export DIR, status, recover or forget NAME: the nodes and the log that Cluster names (docs/cluster.md)',
    options: [...FOLDER, '--json', '--from-database'],
    run: runCluster,
  },
  'mcp-servers': {
    usage: 'ACTION',
    help: 'list, diff SERVER [TOOL], approve or hide SERVER TOOL DIGEST: tools of other MCP servers (docs/upstreams.md)',
    options: [...FOLDER, '--json'],
    run: runMcpServers,
  },
  'import-openapi': {
    usage: 'FILE|URL',
    help: 'print rows of McpTools for the operations of an OpenAPI document, to review and keep (docs/upstreams.md)',
    options: ['--module NAME', '--tag TAG', '--only ID,…'],
    async run(args) {
      const { importedText } = await import('./openapi/import.ts');
      print(await importedText(args));
    },
  },
  'print-schema': {
    usage: '',
    help: 'print the JSON Schema of the configuration file, for editors',
    options: [],
    run(args) {
      refuseMore(args);
      print(`${JSON.stringify(printedSchema(), null, 2)}\n`);
    },
  },
  version: {
    usage: '',
    help: 'print the version',
    options: [],
    run(args) {
      refuseMore(args);
      print(`${VERSION}\n`);
    },
  },
  help: {
    usage: '[COMMAND]',
    help: 'print this text, or the options of a command',
    options: [],
    run([name, ...rest]) {
      refuseMore(name === 'admin' && rest[0] === 'recover' ? rest.slice(1) : rest);
      if (name !== undefined && !Object.hasOwn(COMMANDS, name))
        throw new UsageError(`there is no command ${JSON.stringify(name)}`);
      print(helpText(VERSION, name as CommandName | undefined));
    },
  },
} as const satisfies Record<string, Command>;

function refuseMore([first]: readonly string[]): void {
  if (first !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(first)}`);
}

function folderOf(message: string, [folder, ...rest]: readonly string[]): [string, string[]] {
  if (folder === undefined || folder.startsWith('-')) throw new UsageError(message);
  return [folder, rest];
}

async function runCheck(args: readonly string[]): Promise<void> {
  const flag = '--use-older-commit';
  const { dataPath } = loadOrEnd(parseFlags(args.filter((each) => each !== flag)));
  if (args.includes(flag)) print(`${await goBackACommit(dataPath, Date.now())}\n`);
  const { sound } = await checkData(dataPath, (line) => print(`${line}\n`));
  if (!sound) process.exitCode = EXIT.storage;
}

export function helpText(version: string, name?: CommandName): string {
  const commands = Object.entries<Command>(COMMANDS).filter(([each]) => name === undefined || each === name);
  const wanted = new Set(commands.flatMap(([, { options }]) => options));
  const width = Math.max(...commands.map(([each, { usage }]) => each.length + 1 + usage.length)) + 2;
  const options = Object.entries(OPTIONS).filter(([option]) => wanted.has(option as keyof typeof OPTIONS));
  const lines = [
    `gatehouse ${version}: one public entry point for backend modules`,
    '',
    ...commands.map(([each, { usage, help }]) => `  gatehouse ${`${each} ${usage}`.padEnd(width)}${help}`),
    ...(options.length === 0 ? [] : ['']),
    ...options.map(([option, help]) => `  ${option.padEnd(22)}${help}`),
    `  ${'-h, --help'.padEnd(22)}this text`,
  ];
  return `${lines.join('\n')}\n`;
}

const DEFAULT_SECONDS = 10;
const OPTION = '--seconds';

/** Prints the file. Throws `NoGateway` where none serves the folder, or it takes another profile. */
async function takeProfile([kind, ...args]: readonly string[]): Promise<void> {
  if (!PROFILE_KINDS.some((each) => each === kind))
    throw new UsageError(`profile needs what to profile: ${PROFILE_KINDS.join(' or ')}`);
  const at = args.indexOf(OPTION);
  const seconds = at < 0 ? DEFAULT_SECONDS : secondsOf(args[at + 1]);
  const rest = at < 0 ? args : args.toSpliced(at, 2);
  const { dataPath } = loadOrEnd(parseFlags(rest));
  const answer = await askFolder(dataPath, 'profile', `${kind} ${seconds}`, seconds * SECOND_MS);
  const { file, fault } = JSON.parse(answer) as { readonly file?: string; readonly fault?: string };
  if (file === undefined) throw new NoGateway(`no profile: ${fault}`);
  print(`${file}\n`);
}

function secondsOf(text = ''): number {
  if (!/^[1-9][0-9]?$/.test(text) || Number(text) > PROFILE_SECONDS_MAX)
    throw new UsageError(`${OPTION} needs a number from 1 to ${PROFILE_SECONDS_MAX}`);
  return Number(text);
}
