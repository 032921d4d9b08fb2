/** The official server "everything": on a free loopback port, and as a command. */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pickPort } from '../../../kit/free-port.ts';
import { plainEnvironment } from '../../../kit/launch.ts';

const PACKAGE = '@modelcontextprotocol/server-everything';

const FILE = join(
  dirname(createRequire(import.meta.url).resolve(`${PACKAGE}/package.json`)),
  'dist/index.js',
);

export const EVERYTHING_COMMAND = [process.execPath, FILE, 'stdio'];

/** Resolves when it listens. */
export async function startEverything() {
  const port = await pickPort();
  const server = spawn(process.execPath, [FILE, 'streamableHttp'], {
    env: { ...plainEnvironment(), PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    let text = '';
    server.stderr.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      if (/listening on port/.test(text)) resolve();
    });
  });
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    stop(): void {
      server.kill('SIGKILL');
    },
  };
}
