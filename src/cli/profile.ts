/** The command `profile`: asks the gateway that serves the data folder for a profile of its main thread. */
import { parseFlags, UsageError } from '../config/load.ts';
import { SECOND_MS } from '../domain/time.ts';
import { PROFILE_KINDS, PROFILE_SECONDS_MAX } from '../io/observability/profiles.ts';
import { askFolder } from './folder-request.ts';
import { loadOrEnd, NoGateway, print } from './output.ts';

const DEFAULT_SECONDS = 10;
const OPTION = '--seconds';

/** Prints the file. Throws `NoGateway` where none serves the folder, or it takes another profile. */
export async function takeProfile([kind, ...args]: readonly string[]): Promise<void> {
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
