/** v2 uploads against the program: every client receives the 413 for a body that is too large. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { sendHttp } from '../../../kit/http.ts';
import { launchFor, NO_FILE_LIMITS } from '../../../kit/launch.ts';
import { count } from '../../support/depth.ts';
import { createDraft } from '../../support/files/draft-program.ts';

t.setTimeout(120_000);

const MEGABYTE = 1024 * 1024;
const CAP = MEGABYTE;
const TRIES = count(40);

type Sender = (
  url: string,
  cookie: string,
  body: Buffer,
  chunked: boolean,
) => Promise<{ status: number; text: string }>;

const viaUndici: Sender = async (url, cookie, body, chunked) => {
  const init = chunked ? { body: new Blob([body]).stream(), duplex: 'half' } : { body };
  const answer = await fetch(url, { method: 'POST', headers: { Cookie: cookie }, ...init } as RequestInit);
  return { status: answer.status, text: await answer.text() };
};

const viaNode: Sender = (url, cookie, body, chunked) => {
  const headers = { Cookie: cookie, ...(chunked ? {} : { 'Content-Length': body.length }) };
  return sendHttp(url, { method: 'POST', headers, body });
};

const viaCurl: Sender = async (url, cookie, body, chunked) => {
  const flags = chunked ? ['-H', 'Transfer-Encoding: chunked'] : [];
  const args = ['-sS', '-X', 'POST', '-H', `Cookie: ${cookie}`, '-H', 'Expect:', ...flags];
  const child = spawn('curl', [...args, '--data-binary', '@-', '-w', '\n%{http_code}', url]);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  child.stdin.on('error', () => child.stdin.destroy());
  child.stdin.end(body);
  await once(child, 'close');
  const at = text.lastIndexOf('\n');
  return { status: Number(text.slice(at + 1)), text: text.slice(0, at) };
};

const SENDERS: Readonly<Record<string, Sender>> = {
  undici: viaUndici,
  'node:http': viaNode,
  ...(existsSync('/usr/bin/curl') ? { curl: viaCurl } : {}),
};

// covers S6
t.test('413 with 1301 reaches the client in every attempt, declared and chunked', async (t) => {
  const gateway = await launchFor(t, {
    args: ['--sandbox'],
    configuration: { Settings: { ...NO_FILE_LIMITS, FileMaxSizeBytes: CAP } },
  });
  const { cookie } = await signUp(gateway.url);
  const body = Buffer.alloc(6 * MEGABYTE, 7);
  for (const [name, send] of Object.entries(SENDERS)) {
    for (const chunked of [false, true]) {
      const counts = new Map<string, number>();
      const drafts = Array.from({ length: TRIES }, () => createDraft(gateway.url, cookie));
      for (const fileId of await Promise.all(drafts)) {
        const url = `${gateway.url}/auth/v2/file/stream_upload/${fileId}`;
        const answered = await send(url, cookie, body, chunked).then(
          ({ status, text }) => `${status} ${(JSON.parse(text) as { error: { code: number } }).error.code}`,
          (error: Error) => `lost: ${String(error.cause ?? error)}`,
        );
        counts.set(answered, (counts.get(answered) ?? 0) + 1);
      }
      t.same([...counts], [['413 1301', TRIES]], `${name}, ${chunked ? 'chunked' : 'declared'}`);
    }
  }
});
