/** `npm run tour` and the blocks of docs/tour.md, run against the program. */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { listenFor } from '../../kit/http.ts';
import { launchFor, plainEnvironment } from '../../kit/launch.ts';
import { runTour } from '../../tools/tour.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';
import { lacking } from '../support/programs/tools.ts';

t.setTimeout(240_000);

interface Run {
  code: number | null;
  stdout: string;
  stderr: string;
}

const standing = await launchFor(t, { args: ['--sandbox'] });

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));
const TOUR = fileURLToPath(new URL('../../tools/tour.js', import.meta.url));

function run(command: string, args: string[], environment: Record<string, string> = {}): Promise<Run> {
  const child = spawn(command, args, { cwd: PROJECT, env: plainEnvironment(environment) });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    stdout += part;
  });
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    stderr += part;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

/** In this process: a process of its own loads a quarter of a second of modules. */
async function tour(...args: string[]): Promise<Run> {
  const run = { code: 0, stdout: '', stderr: '' };
  const write = (text: string) => {
    run.stdout += text;
  };
  const warn = (text: string) => {
    run.stderr += text;
  };
  run.code = await runTour(args, write, warn);
  return run;
}

async function serve(test: Test, handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  return (await listenFor(test, server)).url;
}

t.test(
  'tour: all steps succeed on a gateway of its own, over a kill -9, and no secret is printed',
  async (t) => {
    const { code, stdout, stderr } = await run(process.execPath, [TOUR]);
    t.equal(code, 0, stdout.slice(-2_000) + stderr);
    t.match(stdout, /All 32 steps came out as they should\./);
    t.match(stdout, /kill -9 sent, the process is gone/);
    t.match(stdout, /still 987\.50 DEMO/);
    t.notMatch(stdout, /sid=[A-Za-z0-9_-]{7}/, 'cookies are cut');
    t.notMatch(stdout, /Bearer [A-Za-z0-9_-]{7}/, 'bearers are cut');
    t.notMatch(stdout, /(?:X-MCP-Code: |\\"code\\":\\")[A-Za-z0-9_-]{7}/, 'capability codes are cut');
    t.match(stdout, /the file is whole: 120000 bytes were kept, 180000 came later/);
    t.match(stdout, /120000 and 180000 bytes are the file/);
    t.notMatch(stdout, /(?:"fileCode":"|v2\/file\/)(?!create_draft|stream_upload)[A-Za-z_-][A-Za-z0-9_-]{6}/);
    t.notMatch(stdout, /"(?:sessionId|code)":"[A-Za-z0-9_-]{7}/, 'sessions and codes in bodies are cut');
  },
);

t.test('tour: against a running gateway', async (t) => {
  const { code, stdout } = await tour('--target', standing.url);
  t.equal(code, 0, stdout.slice(-2_000));
  t.match(stdout, /All 28 steps/);
});

t.test('tour: the first failed step ends the tour with 1 and is named', async (t) => {
  const broken = await serve(t, (_request, response) =>
    response.writeHead(500).end('{"error":{"code":1000}}'),
  );
  const failed = await tour('--target', broken);
  t.equal(failed.code, 1);
  t.match(failed.stdout, /GET \/health: HTTP 500 instead of 200/);
  const ill = await serve(t, (_request, response) => response.end('{"status":"unhealthy"}'));
  const unhealthy = await tour('--target', ill);
  t.equal(unhealthy.code, 1);
  t.match(unhealthy.stdout, /it does not say "healthy"/);
  const html = await serve(t, (_request, response) => response.end('<h1>It works!</h1>'));
  t.equal((await tour('--target', html)).code, 1);
});

t.test('tour: ends with 1 when no gateway answers, with 64 for a wrong option', async (t) => {
  const url = await serve(t, (request) => request.socket.destroy());
  const silent = await tour('--target', url);
  t.equal(silent.code, 1);
  t.match(silent.stdout, /no answer from/);
  for (const args of [['--target'], ['--target', 'nonsense'], ['--unknown'], ['extra']]) {
    const { code, stderr } = await (args[0] === 'extra'
      ? run(process.execPath, [TOUR, ...args])
      : tour(...args));
    t.equal(code, 64, args.join(' '));
    t.match(stderr, /usage/);
  }
});

t.test('tour: a 429 is retried after its Retry-After; a 429 without the header is a failure', async (t) => {
  const arrivalsMs: number[] = [];
  const url = await serve(t, (_request, response) => {
    arrivalsMs.push(performance.now());
    if (arrivalsMs.length === 1) response.writeHead(429, { 'retry-after': '1' }).end('{}');
    else response.end('{"status":"unhealthy"}');
  });
  const { stdout } = await tour('--target', url);
  t.match(stdout, /429: over the limit, waiting 1 s as Retry-After says/);
  t.equal(arrivalsMs.length, 2);
  const [first = 0, second = 0] = arrivalsMs;
  t.ok(second - first >= 990, `${Math.round(second - first)} ms`);
  const rude = await serve(t, (_request, response) => response.writeHead(429).end('{}'));
  const { code } = await tour('--target', rude);
  t.equal(code, 1, 'a 429 without Retry-After is a fault of the gateway');
});

const skip = lacking('bash', 'curl');

t.test('tour page: every block runs, and both uploads come back unchanged', { skip }, async (t) => {
  const page = await readFile(new URL('../../../docs/tour.md', import.meta.url), 'utf8');
  const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
  t.equal(blocks.length, 8);
  const script = ['set -euo pipefail', ...blocks].join('\n');
  const folder = temporaryFolder(t);
  const { code, stdout, stderr } = await run('bash', ['-c', script], { GATE: standing.url, TMPDIR: folder });
  t.equal(code, 0, stderr + stdout);
  t.match(stdout, /"status":"healthy"/);
  t.match(stdout, /"newAccount":true/);
  t.match(stdout, /"mcpAccess":true/);
  t.match(stdout, /McpVerified until \d{4}-/);
  t.match(stdout, /"protocolVersion":"2024-11-05"/);
  t.match(stdout, /\\"balance\\":\\"1000\.00\\"/);
  t.match(stdout, /"resources":\[/);
  t.match(stdout, /v1: the same bytes/);
  t.match(stdout, /v2: the same bytes/);
});
