/** The package of the connector as the gateway serves it. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { connectorRoutes } from '../../../src/io/web/connector.ts';
import { startHttp } from '../../support/http.ts';

function start(t: Test, folder: string): string {
  const { url, close } = startHttp({ routes: connectorRoutes(folder) });
  t.teardown(close);
  return url;
}

// covers R43 S95
t.test(
  'connector: its address has the version, the one without leads there, and pages get its SHA-256',
  async (t) => {
    const folder = t.testdir({ 'notes.txt': 'no package' });
    const bytes = Buffer.from('the package');
    writeFileSync(`${folder}/connector-1.2.3.tgz`, bytes);
    const url = start(t, folder);
    const path = '/connect/connector-1.2.3.tgz';
    const newest = await fetch(`${url}/connect/connector.tgz`, { redirect: 'manual' });
    t.equal(newest.status, 302);
    t.equal(newest.headers.get('location'), path);
    t.equal(newest.headers.get('cache-control'), 'no-cache');
    const served = await fetch(`${url}${path}`, { headers: { 'accept-encoding': 'br, gzip' } });
    t.equal(served.headers.get('content-type'), 'application/gzip');
    t.equal(served.headers.get('content-encoding'), null);
    t.match(served.headers.get('cache-control'), /immutable/);
    t.ok(Buffer.from(await served.arrayBuffer()).equals(bytes));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const facts = await (await fetch(`${url}/connect/connector.json`)).json();
    t.strictSame(facts, { result: { version: '1.2.3', path, sha256 } });
    t.equal((await fetch(`${url}/connect/connector-1.2.2.tgz`)).status, 404, 'another version');
  },
);

t.test('connector: a build that packed none has no package, and says so to pages', async (t) => {
  const url = start(t, `${t.testdir()}/missing`);
  t.equal((await fetch(`${url}/connect/connector.tgz`)).status, 404);
  t.strictSame(await (await fetch(`${url}/connect/connector.json`)).json(), { result: null });
});
