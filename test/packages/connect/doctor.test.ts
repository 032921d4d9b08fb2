/** `doctor` names each thing that can be wrong, and stops there. */
import t from 'tap';
import { addressOf } from '../../../packages/connect/src/address.ts';
import { lettersOf } from '../../../packages/connect/src/agent-key.ts';
import { examine } from '../../../packages/connect/src/doctor.ts';
import { explainRefusal } from '../../../packages/connect/src/enrollment.ts';
import { LoginRefused } from '../../../packages/connect/src/login.ts';
import {
  type FakeAnswer,
  failed,
  fakeSystem,
  isLogin,
  json,
  KEY,
  ORIGIN,
  refusal,
  START_MS,
} from './system.ts';

const INFO = { result: { project: 'demo', version: '0.2.0', baseUrl: ORIGIN } };
const DATE = { date: new Date(START_MS).toUTCString() };
const HOUR_MS = 3_600_000;

interface Broken {
  readonly info?: () => FakeAnswer;
  readonly login?: () => FakeAnswer;
  readonly mcp?: () => FakeAnswer;
  readonly resolve?: () => Promise<readonly string[]>;
  readonly ownMs?: number;
}

async function diagnose({ info, login, mcp, resolve, ownMs = START_MS }: Broken) {
  const system = fakeSystem((sent) => {
    if (isLogin(sent)) return login?.();
    if (sent.url.endsWith('/info')) return info?.() ?? json(INFO, { headers: DATE });
    return mcp?.() ?? json({ result: {} });
  });
  system.time.ownMs = ownMs;
  const explain = (refused: Parameters<typeof explainRefusal>[0]) =>
    explainRefusal(refused, ORIGIN, KEY, system.fetch);
  const options = { ...addressOf(ORIGIN), url: ORIGIN, key: KEY, explain, ...system };
  const findings = [];
  for await (const finding of examine({ ...options, resolve: resolve ?? (async () => ['192.0.2.1']) }))
    findings.push(finding);
  return findings;
}

t.test('doctor: a sound way has six findings and no failure', async (t) => {
  const findings = await diagnose({});
  t.strictSame(
    findings.map(({ step, ok }) => `${step} ${ok}`),
    ['DNS', 'TLS', 'Version', 'Clock', 'Key', 'MCP'].map((step) => `${step} true`),
  );
});

t.test('doctor: what is wrong is the last finding, in one sentence', async (t) => {
  const notFound = Object.assign(new Error(), { code: 'ENOTFOUND' });
  const rows: [string, Broken, RegExp][] = [
    [
      'DNS',
      { resolve: () => Promise.reject(notFound) },
      /^The name gate\.example has no address \(ENOTFOUND\)/,
    ],
    ['TLS', { info: () => failed('CERT_HAS_EXPIRED') }, /is not trusted: .*CERT_HAS_EXPIRED/],
    ['TLS', { info: () => failed('ERR_TLS_CERT_ALTNAME_INVALID') }, /is not trusted/],
    ['TLS', { info: () => failed('ERR_SSL_WRONG_VERSION_NUMBER') }, /speaks no TLS/],
    ['Gateway', { info: () => failed('ECONNREFUSED', 'connect') }, /takes no connection \(ECONNREFUSED\)/],
    ['Gateway', { info: () => failed('ECONNRESET') }, /closed the connection/],
    ['Version', { info: () => new Response('<html>') }, /not as a Gatehouse/],
    ['Version', { info: () => json({ result: {} }, { status: 404 }) }, /HTTP 404/],
    ['Key', { login: () => refusal(401, 1101, 'Session not found') }, new RegExp(lettersOf(KEY.publicKey))],
    ['Key', { login: () => refusal(401, 1103, 'Access denied') }, /blocked, or its MCP access is off/],
    ['Key', { login: () => refusal(401, 1104, 'Challenge expired') }, /this clock is wrong/],
    [
      'Key',
      { login: () => refusal(401, 1105, 'Invalid signature') },
      /Invalid signature \(HTTP 401, code 1105\)/,
    ],
    ['MCP', { mcp: () => json({}, { status: 404 }) }, /HTTP 404/],
  ];
  for (const [step, broken, says] of rows) {
    const findings = await diagnose(broken);
    t.match(findings.at(-1), { step, ok: false, says }, String(says));
    t.ok(findings.slice(0, -1).every(({ ok }) => ok));
    t.match(findings.at(-1)?.says, /^[^\n]+\.$|\?$/);
  }
});

t.test('doctor: a wrong clock is named and is no failure', async (t) => {
  for (const [ownMs, says] of [
    [START_MS + HOUR_MS, /3600 s ahead of/],
    [START_MS - HOUR_MS, /3600 s behind/],
  ] as const) {
    const findings = await diagnose({ ownMs });
    t.match(
      findings.find(({ step }) => step === 'Clock'),
      { ok: true, says },
    );
    t.equal(findings.at(-1)?.step, 'MCP');
  }
});

t.test('connector: the link leads to the public address of the gateway', async (t) => {
  const refused = new LoginRefused(401, 1101, 'Session not found');
  const linkAt = async (info: FakeAnswer) => {
    const { fetch } = fakeSystem(() => info);
    const text = await explainRefusal(refused, 'http://10.0.0.7:8080', KEY, fetch);
    return /open (\S+?)#/.exec(text)?.[1];
  };
  t.equal(await linkAt(json(INFO)), `${ORIGIN}/`);
  for (const wrong of [json({ result: { baseUrl: 'javascript:x' } }), json({}), failed('ECONNRESET')])
    t.equal(await linkAt(wrong), 'http://10.0.0.7:8080/');
});
