/** Requests for a set-up link in the data folder: which count, and what is left of them. */
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import t, { type Test } from 'tap';
import type { AuditRecord } from '../../src/actors/runtime/actor.ts';
import { AdminRecovery, linkFileOf, requestFileOf } from '../../src/bootstrap/admin-recovery.ts';
import { createLog } from '../../src/io/observability/log.ts';

const NONCE = 'A'.repeat(22);
const ADDRESS = 'http://localhost:8080/ProxyAdmin/Setup#token';

function start(t: Test) {
  const dataPath = t.testdir({});
  const audited: AuditRecord[] = [];
  const linksAtAudit: string[][] = [];
  const written: string[] = [];
  const log = {
    ...createLog(),
    write: (...given: readonly unknown[]) => void written.push(String(given[0])),
  };
  const recovery = new AdminRecovery({
    dataPath,
    clock: Date.now,
    log,
    async audit(record) {
      linksAtAudit.push(readdirSync(dataPath).filter((name) => name.endsWith('.link')));
      audited.push(record);
    },
    createLink: () => ADDRESS,
  });
  t.teardown(() => recovery.stop());
  return { dataPath, audited, linksAtAudit, written, recovery, request: requestFileOf(dataPath) };
}

t.test(
  'admin recovery: a request is removed, audited, and then answered in a file of mode 0600',
  async (t) => {
    const { dataPath, audited, linksAtAudit, written, recovery, request } = start(t);
    await recovery.check();
    t.same(written, [], 'without a request nothing happens');
    writeFileSync(request, NONCE, { mode: 0o600 });
    await recovery.check();
    const link = linkFileOf(dataPath, NONCE);
    t.equal(readFileSync(link, 'utf8'), `${ADDRESS}\n`);
    t.equal(statSync(link).mode & 0o777, 0o600);
    t.match(audited, [{ event: 'admin_recovery', fields: { uid: process.geteuid?.() } }]);
    t.same(linksAtAudit, [[]], 'the record is on disk before the link');
    t.same(written, ['adminRecovery']);
    recovery.stop();
    t.same(readdirSync(dataPath), [], 'a link that was not read ends with the gateway');
  },
);

// covers S138
t.test('admin recovery: a file that others could have written is refused and removed', async (t) => {
  const kinds: Record<string, (file: string) => void> = {
    'writable by its group': (file) => {
      writeFileSync(file, NONCE);
      chmodSync(file, 0o660);
    },
    'a link': (file) => {
      writeFileSync(`${file}.other`, NONCE);
      symlinkSync(`${file}.other`, file);
    },
    'a second name': (file) => {
      writeFileSync(`${file}.other`, NONCE);
      linkSync(`${file}.other`, file);
    },
    'a folder': (file) => mkdirSync(file),
    'too long': (file) => writeFileSync(file, NONCE.repeat(3)),
    'no nonce': (file) => writeFileSync(file, `../../${NONCE.slice(6)}`),
    'too old': (file) => {
      writeFileSync(file, NONCE);
      const secondsAgo = Date.now() / 1000 - 61;
      utimesSync(file, secondsAgo, secondsAgo);
    },
  };
  for (const [name, make] of Object.entries(kinds)) {
    await t.test(name, async (t) => {
      const { dataPath, audited, written, recovery, request } = start(t);
      make(request);
      await recovery.check();
      t.same({ written, audited }, { written: ['adminRecoveryRefused'], audited: [] });
      t.same(
        readdirSync(dataPath).filter((each) => !each.endsWith('.other')),
        [],
      );
    });
  }
});
