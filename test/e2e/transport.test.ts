/** TLS of the program: accepted handshakes, a certificate replaced at run time, HSTS, Host names. */
import { X509Certificate } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import tls from 'node:tls';
import t, { type Test } from 'tap';
import { sendHttp } from '../../kit/http.ts';
import { launchFor, type RunningGateway } from '../../kit/launch.ts';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { count } from '../support/depth.ts';

const TIMEOUT_MS = 120_000;
t.setTimeout(TIMEOUT_MS);

/** Connections that clients open during a change of the certificate, and how many at a time. */
const CONNECTIONS = count(800);
const AT_A_TIME = 8;

const NO_LIMITS = { IpRPSLimit: 0, ApiRPSLimit: 0 };

interface Files {
  readonly cert: string;
  readonly key: string;
}

/** Replaces a file as renewal tools do: writes a temporary file and renames it. */
function put({ cert, key }: Files, { certificate, key: secret }: Certificate): void {
  for (const [path, text] of [
    [cert, certificate],
    [key, secret],
  ] as const) {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  }
}

function filesIn(t: Test, certificate: Certificate): Files {
  const folder = t.testdir({});
  const files = { cert: `${folder}/cert.pem`, key: `${folder}/key.pem` };
  put(files, certificate);
  return files;
}

async function start(t: Test, configuration: object): Promise<RunningGateway> {
  const gateway = await launchFor(t, { configuration });
  return gateway;
}

const portOf = (url: string) => Number(new URL(url).port);
const printOf = ({ certificate }: Certificate) => new X509Certificate(certificate).fingerprint256;

/** Result of a handshake: version and suite, or the error code. */
function handshake(port: number, options: tls.ConnectionOptions): Promise<string> {
  return new Promise((resolve) => {
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options }, () => {
      resolve(`${socket.getProtocol()} ${socket.getCipher().name}`);
      socket.destroy();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

/** Fingerprint of the certificate of a new connection, after one answered request. */
function served(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path: '/health?plain=1', rejectUnauthorized: false };
    https
      .get({ ...options, agent: false }, (answer) => {
        const print = (answer.socket as tls.TLSSocket).getPeerCertificate().fingerprint256;
        answer
          .resume()
          .on('end', () => resolve(print))
          .on('error', reject);
      })
      .on('error', reject);
  });
}

const get = (url: string, headers: Record<string, string> = {}) =>
  sendHttp(url, { headers, rejectUnauthorized: false });

/** Each serves two tests. */
const withTls = await start(t, { Listen: { tls: filesIn(t, makeCertificate('rsa')) } });
const behindProxy = await start(t, {
  Production: true,
  Internal: { allowHosts: ['metrics.internal.example', 'Gate-1'] },
  Settings: NO_LIMITS,
});

// covers S128
t.test('TLS: version 1.3, and 1.2 only with forward secrecy', async (t) => {
  const port = portOf(withTls.url);
  const legacy = 'DEFAULT@SECLEVEL=0';
  const only = (version: tls.SecureVersion, ciphers = legacy) =>
    handshake(port, { minVersion: version, maxVersion: version, ciphers });
  t.match(await only('TLSv1.3', 'TLS_AES_128_GCM_SHA256'), /^TLSv1\.3 TLS_AES/);
  for (const suite of [
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ])
    t.equal(await only('TLSv1.2', suite), `TLSv1.2 ${suite}`);
  for (const suite of [
    'AES128-GCM-SHA256',
    'AES256-GCM-SHA384',
    'AES128-SHA',
    'AES256-SHA',
    'ECDHE-RSA-AES128-SHA',
    'ECDHE-RSA-AES256-SHA',
  ])
    t.match(await only('TLSv1.2', `${suite}:@SECLEVEL=0`), /^ERR_SSL_\S*HANDSHAKE_FAILURE$/, suite);
  for (const version of ['TLSv1', 'TLSv1.1'] as const)
    t.match(await only(version), /^ERR_SSL_\S*(PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL)$/, version);
});

// covers S129
t.test('TLS: SIGHUP serves a new certificate, keeps open connections and loses no new one', async (t) => {
  const [first, second] = [makeCertificate(), makeCertificate('rsa')];
  const files = filesIn(t, first);
  const gateway = await start(t, { Listen: { tls: files }, Settings: NO_LIMITS });
  const port = portOf(gateway.url);
  t.equal(await served(port), printOf(first));
  const kept = new https.Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  t.teardown(() => kept.destroy());
  const onKept = () =>
    new Promise<string>((resolve, reject) => {
      https
        .get({ port, host: '127.0.0.1', path: '/health?plain=1', agent: kept }, (answer) => {
          const { fingerprint256 } = (answer.socket as tls.TLSSocket).getPeerCertificate();
          answer.resume().on('end', () => resolve(`${answer.statusCode} ${fingerprint256}`));
        })
        .on('error', reject);
    });
  t.equal(await onKept(), `200 ${printOf(first)}`);
  let left = CONNECTIONS;
  let changed = false;
  const prints = new Map<string, number>();
  const failures: string[] = [];
  const client = async () => {
    while (left > 0) {
      left -= 1;
      if (!changed && left < CONNECTIONS / 2) {
        changed = true;
        put(files, second);
        gateway.process.kill('SIGHUP');
      }
      // Idle connections are closed after 10 s.
      if (left % 50 === 0) await onKept();
      const print = await served(port).catch((error: Error) => `failed: ${error.message}`);
      if (print.startsWith('failed')) failures.push(print);
      else prints.set(print, (prints.get(print) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, client));
  t.same(failures, [], `${CONNECTIONS} connections beside the change`);
  await gateway.said(/certificate renewed/);
  t.ok((prints.get(printOf(first)) ?? 0) > 0, 'the first certificate is used before the change');
  t.ok((prints.get(printOf(second)) ?? 0) > 0, 'the second certificate is used after the change');
  t.equal(await served(port), printOf(second));
  t.equal(await onKept(), `200 ${printOf(first)}`, 'the open connection keeps its first certificate');
  for (const [name, bad] of Object.entries({
    'of another key': { certificate: makeCertificate().certificate, key: second.key },
    'of a key of the same type': { certificate: makeCertificate('rsa').certificate, key: second.key },
    'no certificate': { certificate: 'none', key: second.key },
  })) {
    const before = gateway.output().stderr.split('certificate refused').length;
    put(files, bad);
    gateway.process.kill('SIGHUP');
    await gateway.said(new RegExp(`(?:certificate refused.*\\n[^\\r]*){${before}}`));
    t.equal(await served(port), printOf(second), `${name}: the one in use stays`);
  }
  put(files, first);
  gateway.process.kill('SIGHUP');
  await gateway.said(/certificate renewed[\s\S]*certificate renewed/);
  t.equal(await served(port), printOf(first), 'a valid certificate after invalid ones is loaded');
  t.equal((await gateway.stop()).code, 0);
});

// covers S130
t.test('HSTS: sent on every answer in production with TLS of its own, and never otherwise', async (t) => {
  const files = filesIn(t, makeCertificate());
  const cases = {
    'production, TLS of its own': [
      await start(t, { Production: true, Listen: { tls: files } }),
      'max-age=31536000',
    ],
    'production, no TLS': [behindProxy, undefined],
    'TLS of its own': [withTls, undefined],
  } as const;
  for (const [name, [gateway, value]] of Object.entries(cases)) {
    for (const path of ['/health', '/auth/v1/get_info', '/nothing', '/']) {
      const { headers } = await get(`${gateway.url}${path}`);
      t.equal(headers['strict-transport-security'], value, `${name}: ${path}`);
    }
    const foreign = await get(`${gateway.url}/health`, { Host: 'evil.example' });
    t.equal(foreign.status, 403);
    t.equal(foreign.headers['strict-transport-security'], value, `${name}: a refusal`);
    const inside = await get(`${gateway.internal}/health`);
    t.equal(
      inside.headers['strict-transport-security'],
      undefined,
      `${name}: the internal listener has no TLS`,
    );
  }
});

// covers S127
t.test('internal listener: a Host name that external DNS could resolve is 403 with 1103', async (t) => {
  const gateway = behindProxy;
  const ask = (host: string, path = '/metrics') => get(`${gateway.internal}${path}`, { Host: host });
  const port = portOf(gateway.internal);
  for (const host of [
    '127.0.0.1',
    `127.0.0.1:${port}`,
    '10.1.2.3:9090',
    `[::1]:${port}`,
    '[2001:db8::1]',
    'localhost',
    `LOCALHOST:${port}`,
    'gate.localhost',
    'metrics.internal.example:8081',
    'gate-1',
  ])
    t.equal((await ask(host)).status, 200, host);
  const differing: unknown[] = [];
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    'notlocalhost',
    '127.0.0.1.evil.example',
    'x.metrics.internal.example',
    '0x7f.1',
  ]) {
    for (const path of ['/metrics', '/health', '/internal/v1/events', '/nothing']) {
      const answer = await ask(host, path);
      if (answer.status !== 403 || !answer.text.includes('"code":1103'))
        differing.push([`${host} ${path}`, answer.status, answer.text]);
    }
  }
  t.same(differing, []);
});
