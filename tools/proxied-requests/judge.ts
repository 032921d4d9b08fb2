/**
 * Sends each request of the table through the gateway, nginx and HAProxy to one module that records what arrives.
 * `node build/tools/proxied-requests/judge.js` writes docs/proxied-requests.md.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pickPort, untilListening } from '../../kit/free-port.ts';
import { listenOnLoopback } from '../../kit/http.ts';
import { launch, NO_LIMITS } from '../../kit/launch.ts';
import { runSync } from '../../kit/run-sync.ts';
import { ASKED_METHODS } from '../../src/domain/config/configuration.ts';
import { type Outcome, PROXIED_REQUESTS, type ProxiedRequest } from './rows.ts';

interface Arrival {
  readonly method: string;
  readonly target: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A port to send requests to. */
interface ProxyServer {
  readonly port: number;
  readonly isGateway?: true;
  stop(): Promise<unknown> | unknown;
}

/** Silence after which a server gives no answer: its bound is far beyond that of a request. */
const SILENT_MS = 15_000;

class RecordingModule {
  readonly #server = createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      this.last = arrivalOf(request, Buffer.concat(pieces).toString('latin1'));
      response.end('{"result":null}');
    });
  });
  last: Arrival | undefined;

  async open(): Promise<number> {
    return (await listenOnLoopback(this.#server)).port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

function arrivalOf({ method = '', url = '', rawHeaders }: IncomingMessage, body: string): Arrival {
  const fields: Record<string, string> = {};
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    const value = rawHeaders[index + 1] ?? '';
    fields[name] = fields[name] === undefined ? value : `${fields[name]}, ${value}`;
  }
  return { method, target: url, fields, body };
}

/** Names the difference in the compared parts: fields that a proxy adds are no difference. */
function differenceOf(sent: ProxiedRequest, { method, target, fields, body }: Arrival): string | undefined {
  if (method !== sent.method) return `method ${method}`;
  if (target !== sent.target) return `target ${shortOf(target)}`;
  const changed = Object.keys(sent.fields).filter((name) => fields[name] !== sent.fields[name]);
  const [name] = changed;
  if (name !== undefined)
    return `${name} ${fields[name] === undefined ? 'is missing' : shortOf(fields[name])}`;
  return body === sent.body ? undefined : 'body';
}

function outcomeOf(sent: ProxiedRequest, arrived: Arrival): Outcome {
  const what = differenceOf(sent, arrived);
  if (what !== undefined) return { kind: 'changed', what };
  const names = Object.keys(sent.withheld).filter((name) => arrived.fields[name] !== sent.withheld[name]);
  return names.length > 0 ? { kind: 'withheld', names } : { kind: 'arrives' };
}

function shortOf(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Status and code of the answer; undefined when the connection ended without one. */
async function send(
  port: number,
  { bytes, expected }: ProxiedRequest,
  isGateway: boolean,
): Promise<{ status: number; code?: number } | undefined> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.setTimeout(SILENT_MS, () => socket.destroy());
  let received = '';
  return new Promise((resolve) => {
    const answerOf = () => received.replace(/^HTTP\/1\.1 100 [^\n]*\r\n\r\n/, '');
    const end = () => {
      const answer = answerOf();
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1];
      const code = /"code":(-?\d+)/.exec(answer)?.[1];
      socket.destroy();
      if (status === undefined) resolve(undefined);
      else resolve({ status: Number(status), ...(code !== undefined && { code: Number(code) }) });
    };
    socket.on('data', (piece: Buffer) => {
      received += piece.toString('latin1');
      if (isWhole(answerOf())) end();
    });
    socket.on('error', () => undefined);
    socket.on('close', end);
    socket.write(Buffer.from(bytes, 'latin1'));
    // The gateway would wait for more; others take the end of sending for the end of the connection.
    if (isGateway && expected.kind === 'closed') socket.end();
  });
}

/** Success needs no body here; a refusal without a length ends with its connection. */
function isWhole(answer: string): boolean {
  const at = answer.indexOf('\r\n\r\n');
  if (at < 0) return false;
  const head = answer.slice(0, at).toLowerCase();
  const length = /\ncontent-length: *(\d+)/.exec(head)?.[1];
  if (/^http\/1\.[01] 2/.test(head)) return true;
  return length !== undefined && answer.length - at - 4 >= Number(length);
}

async function judge(server: ProxyServer, module: RecordingModule): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const row of PROXIED_REQUESTS) {
    module.last = undefined;
    const answer = await send(server.port, row, server.isGateway === true);
    const arrived = module.last as Arrival | undefined;
    if (arrived === undefined)
      outcomes.push(answer === undefined ? { kind: 'closed' } : { kind: 'refused', ...answer });
    else {
      outcomes.push(outcomeOf(row, arrived));
    }
  }
  return outcomes;
}

async function startGateway(modulePort: number): Promise<ProxyServer> {
  const url = `http://127.0.0.1:${modulePort}`;
  const open = (name: string) => ({ url, public: [`/${name}/v1`] });
  const gateway = await launch({
    configuration: {
      Settings: NO_LIMITS,
      Modules: {
        core: { ...open('core'), methods: ASKED_METHODS },
        plain: open('plain'),
        slashes: { ...open('slashes'), encodedSlashes: true },
      },
    },
  });
  return { port: Number(new URL(gateway.url).port), isGateway: true, stop: () => gateway.stop() };
}

/** A program that reads a file and listens on a port. */
async function startProgram(
  name: string,
  text: string,
  args: (file: string, folder: string) => string[],
  port: number,
) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-proxied-'));
  const file = join(folder, 'configuration');
  writeFileSync(file, text.replaceAll('FOLDER', folder));
  const child = spawn(name, args(file, folder), { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  await untilListening(child, port);
  return { port, stop };
}

async function startNginx(modulePort: number): Promise<ProxyServer> {
  const port = await pickPort();
  const text = `daemon off; master_process off; pid FOLDER/pid; error_log FOLDER/error.log; events {}
http { access_log off; client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy; client_max_body_size 0;
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${modulePort}; proxy_http_version 1.1; } } }
`;
  return startProgram(
    'nginx',
    text,
    (file, folder) => ['-p', folder, '-e', `${folder}/error.log`, '-c', file],
    port,
  );
}

async function startHaproxy(modulePort: number): Promise<ProxyServer> {
  const port = await pickPort();
  const text = `defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
listen all
  bind 127.0.0.1:${port}
  server module 127.0.0.1:${modulePort}
`;
  return startProgram('haproxy', text, (file) => ['-db', '-f', file], port);
}

interface Peer {
  readonly name: string;
  readonly start: (modulePort: number) => Promise<ProxyServer>;
  readonly version: readonly [program: string, argument: string];
}

/** Beside the gateway, with a plain configuration. */
const PEERS: readonly Peer[] = [
  { name: 'nginx', start: startNginx, version: ['nginx', '-v'] },
  { name: 'HAProxy', start: startHaproxy, version: ['haproxy', '-v'] },
];

/** Undefined where the program is not installed. */
function versionOf({ version: [program, argument] }: Peer): string | undefined {
  const { stdout, stderr, error } = runSync(program, [argument]);
  return error === undefined ? /\d+\.\d+\.\d+/.exec(stdout + stderr)?.[0] : undefined;
}

export interface JudgedServer {
  /** With its version. */
  readonly name: string;
  readonly outcomes: readonly Outcome[];
}

/** The outcomes of all rows, by the gateway first; without `peers` by it alone. */
export async function judgeAll(peers: boolean): Promise<JudgedServer[]> {
  const module = new RecordingModule();
  const modulePort = await module.open();
  const found = peers ? PEERS.map((peer) => ({ ...peer, number: versionOf(peer) })) : [];
  const installed = found.filter(({ number }) => number !== undefined);
  const servers = [
    { name: 'Gatehouse', start: startGateway },
    ...installed.map(({ name, number, start }) => ({ name: `${name} ${number}`, start })),
  ];
  const judged: JudgedServer[] = [];
  try {
    for (const { name, start } of servers) {
      const server = await start(modulePort);
      try {
        judged.push({ name, outcomes: await judge(server, module) });
      } finally {
        await server.stop();
      }
    }
  } finally {
    module.close();
  }
  return judged;
}

export function shownOutcome(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'arrives':
      return 'as sent';
    case 'changed':
      return `changed: \`${outcome.what.replaceAll('|', '\\|')}\``;
    case 'withheld':
      return `without the client's ${outcome.names.map((name) => `\`${name}\``).join(', ')}`;
    case 'refused':
      return outcome.code === undefined ? `${outcome.status}` : `${outcome.status}, ${outcome.code}`;
    case 'closed':
      return 'closed';
  }
}

function page(judged: readonly JudgedServer[]): string {
  const rows = PROXIED_REQUESTS.map(({ name }, index) => {
    const shown = judged.map(({ outcomes: { [index]: outcome } }) => outcome && shownOutcome(outcome));
    return `| ${[name, ...shown].join(' | ')} |`;
  });
  return [
    '# Proxied requests',
    '',
    'What a module gets of requests that are sent through the gateway, and through nginx and HAProxy with a plain configuration. `as sent`: method, target, body and all fields arrive unchanged, except those that [modules.md](modules.md#names-that-no-module-receives) names. A number is the status of a refusal, with the code of its JSON; `closed`: the connection ends without an answer. Generated by `node build/tools/proxied-requests/judge.js`; `test/e2e/proxied/requests.test.ts` compares the first column.',
    '',
    `| Request | ${judged.map(({ name }) => name).join(' | ')} |`,
    `|---${'|---'.repeat(judged.length)}|`,
    ...rows,
    '',
  ].join('\n');
}

if (process.argv[1]?.endsWith('judge.js') === true)
  writeFileSync('docs/proxied-requests.md', page(await judgeAll(true)));
