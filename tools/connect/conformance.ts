/** The authorization scenarios of the conformance suite: a client registers itself, and a person agrees to what it asks. */
import { spawn } from 'node:child_process';
import { expectOk, type Person, request } from '../../kit/agent.ts';
import { agree, registerClient } from '../../kit/consent.ts';
import { pickPort } from '../../kit/free-port.ts';
import { plainEnvironment } from '../../kit/launch.ts';

const ASKED = /(http\S+\/connect\/authorize\?\S+)/;

/** The exit code of the suite. `suite`: arguments of npx that start it; `folder`: where it leaves its results. */
export async function runAuthorization(
  suite: readonly string[],
  url: string,
  person: Person,
  folder: string,
): Promise<number> {
  const port = await pickPort();
  const clientId = await registerClient(url, 'Conformance suite', `http://127.0.0.1:${port}/callback`);
  const options = ['--port', String(port), '--client-id', clientId, '--resource', `${url}/connect/mcp`];
  const metadata = await request(`${url}/.well-known/oauth-authorization-server`);
  const issuer = String(expectOk('metadata', metadata).json['issuer']);
  const child = spawn('npx', [...suite, 'authorization', '--url', issuer, ...options], {
    cwd: folder,
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  let isAnswered = false;
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    process.stdout.write(piece);
    text += piece;
    const [, asked] = ASKED.exec(text) ?? [];
    if (asked === undefined || isAnswered || !text.includes('Callback server started')) return;
    isAnswered = true;
    // A fault ends the suite, which waits for the browser.
    agree(url, person, asked)
      .then((callback) => request(callback.href))
      .catch((error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        child.kill();
      });
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
}
