/** nginx and HAProxy before the gateway, with the files of deploy/: pages, streams, uploads, addresses, keep-alive, TLS. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, type RequestOptions, request as send } from 'node:https';
import type { Socket } from 'node:net';
import { join, resolve } from 'node:path';
import t, { type Test } from 'tap';
import { signUp } from '../../kit/agent.ts';
import { stopAfter } from '../../kit/close-after.ts';
import { pickPort, untilListening } from '../../kit/free-port.ts';
import { launch, type RunningGateway } from '../../kit/launch.ts';
import { makeCertificate } from '../support/certificate.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';
import { startNginxWith } from '../support/programs/nginx.ts';
import { lacking } from '../support/programs/tools.ts';
import { shared } from '../support/shared.ts';

t.setTimeout(240_000);

const FILE_BYTES = 3_000_000;
/** An address of this machine that the gateway does not trust. */
const CLIENT = '127.0.0.2';
const { certificate, key } = makeCertificate();

interface Deployment {
  readonly gateway: RunningGateway;
  /** Port of the proxy; all answers come from there. */
  readonly port: number;
  readonly agent: Agent;
}

const start = (options: { args?: string[]; configuration?: object }) =>
  launch({
    ...options,
    configuration: {
      BaseUrl: 'https://localhost',
      TrustedProxies: ['127.0.0.1/32'],
      ...options.configuration,
    },
  });
/** Serves the proxies that end TLS. */
const standing = shared(
  () => start({ args: ['--sandbox'] }),
  (gateway) => gateway.stop(),
);

/** A proxy that `open` starts on the port, for the gateway's port. */
async function deploy(
  t: Test,
  gateway: RunningGateway,
  open: (port: number, target: number, folder: string) => Promise<void>,
): Promise<Deployment> {
  const folder = temporaryFolder(t);
  const files = { 'gateway.pem': `${certificate}${key}`, 'cert.pem': certificate, 'gateway.key': key };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const port = await pickPort();
  await open(port, Number(new URL(gateway.url).port), folder);
  const agent = new Agent({ keepAlive: true, ca: certificate, localAddress: CLIENT, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  return { gateway, port, agent };
}

/** The file of deploy/ with the addresses of this test. */
function fileOf(path: string, changes: Readonly<Record<string, string>>): string {
  const text = readFileSync(path, 'utf8');
  return Object.entries(changes).reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`${path} does not hold ${from}`);
    return changed.replaceAll(from, to);
  }, text);
}

async function startHaproxy(
  t: Test,
  path: string,
  port: number,
  target: number,
  folder: string,
): Promise<void> {
  const changes = {
    '0.0.0.0:443': `127.0.0.1:${port}`,
    '127.0.0.1:8080': `127.0.0.1:${target}`,
    'maxconn 20000': 'maxconn 100',
    '/etc/haproxy/gateway.pem': join(folder, 'gateway.pem'),
  };
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, fileOf(path, changes));
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  await untilListening(child, port);
}

async function startNginx(t: Test, port: number, target: number, folder: string): Promise<void> {
  const changes = {
    'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
    '127.0.0.1:8080': `127.0.0.1:${target}`,
    '/etc/nginx/gateway.pem': join(folder, 'cert.pem'),
    '/etc/nginx/gateway.key': join(folder, 'gateway.key'),
    '/etc/nginx/proxy.conf': resolve('deploy/nginx/proxy.conf'),
  };
  await startNginxWith(t, port, fileOf('deploy/nginx/gatehouse.conf', changes));
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly bytes: Buffer;
  readonly socket: Socket;
}

/** `firstOnly`: of an answer without an end, the first piece. */
function ask(
  { port, agent }: Deployment,
  options: RequestOptions & { readonly content?: Buffer; readonly firstOnly?: boolean },
): Promise<Answer> {
  const { content, firstOnly = false, ...rest } = options;
  return new Promise((done, fail) => {
    const call = send({ host: 'localhost', family: 4, port, agent, ...rest }, (response) => {
      const pieces: Buffer[] = [];
      const end = () => {
        const { statusCode: status = 0, headers, socket } = response;
        done({ status, type: headers['content-type'] ?? '', bytes: Buffer.concat(pieces), socket });
        if (firstOnly) call.destroy();
      };
      response.on('data', (piece: Buffer) => {
        pieces.push(piece);
        if (firstOnly) end();
      });
      response.on('end', end);
      response.on('error', fail);
    });
    call.on('error', fail);
    call.end(content);
  });
}

/** A page, the address of the client, and whether one connection serves several requests. */
async function showsPages(t: Test, deployment: Deployment, keepsAlive: boolean): Promise<void> {
  const { gateway } = deployment;
  const page = await ask(deployment, { path: '/' });
  t.match({ status: page.status, type: page.type }, { status: 200, type: /^text\/html/ }, 'a page');
  const again = await ask(deployment, { path: '/health' });
  t.equal(again.socket === page.socket, keepsAlive, 'keep-alive');
  const agent = `spoofing-${deployment.port}`;
  const spoofed = { 'X-Forwarded-For': '203.0.113.9', 'User-Agent': agent };
  await ask(deployment, { path: '/auth/v1/info', headers: spoofed });
  await gateway.said(new RegExp(`"userAgent":"${agent}"`));
  const lines = gateway.output().stderr.split('\n');
  const line = lines.find((each) => each.includes(agent)) ?? '{}';
  t.match(JSON.parse(line), { clientAddress: CLIENT }, 'the address of the client');
}

/** A stream of events, an upload and a download. */
async function showsStreams(t: Test, deployment: Deployment): Promise<void> {
  const { gateway } = deployment;
  const { cookie } = await signUp(gateway.url);
  const headers = { Cookie: cookie };
  const stream = await ask(deployment, { path: '/auth/v1/events', headers, firstOnly: true });
  t.match(
    { status: stream.status, type: stream.type },
    { status: 200, type: /^text\/event-stream/ },
    'a stream',
  );
  t.ok(stream.bytes.length > 0, 'its first bytes arrive while it is open');

  const bytes = randomBytes(FILE_BYTES);
  const draftPath = `/auth/v2/file/create_draft?fileName=a.bin&fileSize=${bytes.length}`;
  const draft = await ask(deployment, { method: 'POST', path: draftPath, headers });
  const [fileId, code] = (JSON.parse(String(draft.bytes)) as { result: string }).result.split(':');
  const uploadHeaders = {
    ...headers,
    'Content-Type': 'application/octet-stream',
    'Content-Length': bytes.length,
  };
  const upload = { method: 'POST', path: `/auth/v2/file/stream_upload/${fileId}`, headers: uploadHeaders };
  t.equal((await ask(deployment, { ...upload, content: bytes })).status, 200, 'an upload');
  const download = await ask(deployment, { path: `/auth/v2/file/${code}` });
  t.ok(download.bytes.equals(bytes), 'a download');
}

const TERMINATING: Readonly<Record<string, { tool: string; open: typeof startNginx }>> = {
  'nginx with deploy/nginx': { tool: 'nginx', open: startNginx },
  'HAProxy with deploy/haproxy': {
    tool: 'HAProxy',
    open: (t, ...rest) => startHaproxy(t, 'deploy/haproxy/haproxy.cfg', ...rest),
  },
};

for (const [name, { tool, open }] of Object.entries(TERMINATING)) {
  t.test(
    `proxies: ${name} ends TLS, keeps connections, names clients, carries streams and uploads`,
    { skip: lacking(tool) },
    async (test) => {
      const deployment = await deploy(test, await standing(t), (...given) => open(test, ...given));
      await showsPages(test, deployment, true);
      await showsStreams(test, deployment);
    },
  );
}

t.test(
  'proxies: HAProxy with the PROXY protocol names clients, one request a connection',
  { skip: lacking('HAProxy') },
  async (t) => {
    const gateway = stopAfter(t, await start({ configuration: { Listen: { proxyProtocol: true } } }));
    const deployment = await deploy(t, gateway, (...given) =>
      startHaproxy(t, 'deploy/haproxy/proxy-protocol.cfg', ...given),
    );
    await showsPages(t, deployment, false);
  },
);
