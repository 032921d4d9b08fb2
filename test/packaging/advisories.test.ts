/** The check of published advisories: what it refuses, and that a registry without audits is named. */
import { spawn } from 'node:child_process';
import { createServer, type RequestListener } from 'node:http';
import t, { type Test } from 'tap';
import { listenFor } from '../../kit/http.ts';
import { plainEnvironment } from '../../kit/launch.ts';
import { advisoryFaults, readAudit } from '../../tools/packaging/advisories.ts';

const ADVISORY = {
  id: 1,
  url: 'https://advisories.test/GHSA-aaaa-bbbb-cccc',
  title: 'planted',
  severity: 'high',
  vulnerable_versions: '<1000.0.0',
  cwe: [],
  cvss: { score: 7, vectorString: null },
};
const LINE = /^advisories: GHSA-aaaa-bbbb-cccc: (\S+) <1000\.0\.0, of (a run|development), high: planted/m;

interface Ended {
  readonly code: number | null;
  readonly text: string;
}

/** Runs the script with a registry on loopback. */
async function runWith(t: Test, answer: RequestListener): Promise<Ended & { readonly registry: string }> {
  const server = createServer(answer);
  const { url } = await listenFor(t, server);
  const registry = `${url}/`;
  const child = spawn(process.execPath, ['build/tools/packaging/advisories.js'], {
    env: plainEnvironment({ npm_config_registry: registry, npm_config_cache: t.testdir() }),
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, text, registry };
}

/** A registry with these advisories, by package, and nothing else. */
function registryOf(advisories: Readonly<Record<string, readonly object[]>>): RequestListener {
  return (request, response) => {
    const isAudit = request.url?.endsWith('/advisories/bulk') === true;
    request.resume().on('end', () => {
      response.writeHead(isAudit ? 200 : 404, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(isAudit ? advisories : {}));
    });
  };
}

// covers S134
t.test('advisories: one for a package of a run ends the gate', async (t) => {
  const { code, text } = await runWith(t, registryOf({ pino: [ADVISORY] }));
  t.equal(code, 1);
  t.match(LINE.exec(text)?.slice(1), ['pino', 'a run']);
});

// covers S134
t.test('advisories: one for a package of development ends the gate', async (t) => {
  const { code, text } = await runWith(t, registryOf({ acorn: [ADVISORY] }));
  t.equal(code, 1);
  t.match(LINE.exec(text)?.slice(1), ['acorn', 'development']);
});

t.test('advisories: none for the packages of the lock passes', async (t) => {
  const { code, text } = await runWith(t, registryOf({}));
  t.same([code, text], [0, 'advisories: none for the packages of the lock\n']);
});

// covers S134
t.test('advisories: a registry that answers no audits is named and skipped', async (t) => {
  const { code, text, registry } = await runWith(t, (_request, response) => response.writeHead(405).end());
  t.equal(code, 0);
  t.match(text, /^advisories: skipped, no package was checked: 405 Method Not Allowed/);
  t.ok(text.includes(registry), text);
});

// covers S134
t.test('advisories: the fault of a command and a text of another kind are no skip', async (t) => {
  const missing = { error: { code: 'ENOLOCK', summary: 'This command requires an existing lockfile.' } };
  for (const text of [JSON.stringify(missing), '{}', '[]', '', 'npm error', '{"auditReportVersion":1}'])
    t.throws(() => readAudit(text), text);
});

// covers S134
t.test('advisories: an allowed one passes while a package has it, and is a fault afterwards', async (t) => {
  const packages = { '': { dependencies: { a: '1.0.0' } }, 'node_modules/a': { version: '1.0.0' } };
  const via = [{ ...ADVISORY, name: 'a', range: '<2.0.0' }];
  const report = (nodes: readonly string[]) =>
    ({ auditReportVersion: 2, vulnerabilities: { a: { nodes, via }, b: { nodes, via: ['a'] } } }) as const;
  const allowed = { 'GHSA-aaaa-bbbb-cccc': 'the planted one' };
  t.same(advisoryFaults(report(['node_modules/a']), packages, allowed), []);
  t.same(advisoryFaults(report(['node_modules/a']), packages, {}), [
    'GHSA-aaaa-bbbb-cccc: a <2.0.0, of a run, high: planted (https://advisories.test/GHSA-aaaa-bbbb-cccc)',
  ]);
  t.same(advisoryFaults({ auditReportVersion: 2, vulnerabilities: {} }, packages, allowed), [
    'GHSA-aaaa-bbbb-cccc: allowed, but no package of the lock has it',
  ]);
  t.match(
    advisoryFaults(report(['node_modules/z']), packages, allowed)[0],
    /^node_modules\/z: not in the lock/,
  );
});
