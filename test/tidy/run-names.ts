/**
 * Lines of pages that tell people to run a package by its name: the name must be one whose owner is known. Another one can be
 * registered by anyone, and its code would run beside the keys of users. Addresses and paths of files are always right.
 */
import type { Sources } from './sources.ts';

/** Owned by the MCP project. */
const KNOWN: ReadonlySet<string> = new Set([
  '@modelcontextprotocol/inspector',
  '@modelcontextprotocol/conformance',
]);
/** Programs that run or install what the next word names; with a subcommand where they have others. */
const RUNNERS: Readonly<Record<string, ReadonlySet<string> | null>> = {
  npx: null,
  bunx: null,
  uvx: null,
  npm: new Set(['exec', 'x', 'install', 'i', 'add', 'create', 'init']),
  pnpm: new Set(['dlx', 'add', 'install']),
  yarn: new Set(['dlx', 'add']),
  pip: new Set(['install']),
  pipx: new Set(['run', 'install']),
};
/** Options whose value is the package. */
const PACKAGE_OPTION = /^(?:--package|-p)=?/;
export const RUN_PAGES =
  /^(?:(?:README|CONTRIBUTING)\.md|(?:docs|examples|deploy|packages|bench)\/.*\.(?:md|jsonc|yaml)|src\/(?:web|cli)\/.*|packages\/.*\.ts)$/;

export function runNameFaults(sources: Sources): string[] {
  return [...sources].flatMap(([path, text]) => {
    let isBlock = false;
    return text.split('\n').flatMap((line, index) => {
      if (line.startsWith('```')) isBlock = !isBlock;
      // Prose of a manual has words behind the name of a program; what is to be run is code.
      const commands = path.endsWith('.md') && !isBlock ? codeOf(line) : [line];
      return commands
        .flatMap(namesRun)
        .map((name) => `${path}:${index + 1} tells people to run ${name}, which another owner may register`);
    });
  });
}

const codeOf = (line: string) => line.split('`').filter((_, index) => index % 2 === 1);

/** JSON of a host's configuration reads like its command: `"npx", "args": ["-y", "NAME"]`. */
function namesRun(line: string): string[] {
  const words = line
    .split(/["'`,;()[\]{}\s]+/)
    .filter((word) => word !== '' && word !== 'args' && word !== ':');
  return words.flatMap((word, index) => {
    if (!Object.hasOwn(RUNNERS, word)) return [];
    const commands = RUNNERS[word] ?? null;
    const rest = words.slice(commands === null ? index + 1 : index + 2);
    if (commands !== null && !commands.has(words[index + 1] ?? '')) return [];
    const name = nameOf(rest);
    return name === undefined || isPlace(name) || KNOWN.has(name) ? [] : [name];
  });
}

function nameOf(words: readonly string[]): string | undefined {
  const [first, ...rest] = words;
  if (first === undefined) return undefined;
  const option = PACKAGE_OPTION.exec(first)?.[0];
  if (option !== undefined && first.length > option.length) return bare(first.slice(option.length));
  return first.startsWith('-') ? nameOf(rest) : bare(first);
}

/** Without a version. */
function bare(name: string): string {
  const at = name.indexOf('@', 1);
  return at === -1 ? name : name.slice(0, at);
}

const isPlace = (name: string) => /^(?:https?:|\.{0,2}\/|\$)/.test(name) || !/^[@a-z0-9]/.test(name);
