/** Requests of commands in the data folder: which count, and what is left of them. */
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
import {
  answerFileOf,
  FolderRequests,
  type RequestKind,
  requestFileOf,
} from '../../src/bootstrap/folder-requests.ts';
import { createLog } from '../../src/io/observability/log.ts';

const NONCE = 'A'.repeat(22);
const ADDRESS = 'http://localhost:8080/ProxyAdmin/Setup#token';

interface Asked {
  readonly kind: RequestKind;
  readonly body: string;
  readonly uid: number;
}

function start(t: Test) {
  const dataPath = t.testdir({});
  const asked: Asked[] = [];
  const written: string[] = [];
  const log = {
    ...createLog(),
    write: (...given: readonly unknown[]) => void written.push(String(given[0])),
  };
  const answerOf = (kind: RequestKind) => async (body: string, uid: number) => {
    asked.push({ kind, body, uid });
    return ADDRESS;
  };
  const requests = new FolderRequests({
    dataPath,
    clock: Date.now,
    log,
    answer: {
      adminRecover: answerOf('adminRecover'),
      mcpServers: answerOf('mcpServers'),
      profile: answerOf('profile'),
    },
  });
  t.teardown(() => requests.stop());
  return { dataPath, asked, written, requests, request: requestFileOf(dataPath, 'adminRecover') };
}

t.test(
  'folder requests: one is removed and answered in a file of mode 0600 that ends with the gateway',
  async (t) => {
    const { dataPath, asked, written, requests, request } = start(t);
    await requests.check();
    t.same(asked, [], 'without a request nothing happens');
    writeFileSync(request, NONCE, { mode: 0o600 });
    writeFileSync(requestFileOf(dataPath, 'mcpServers'), `${NONCE}\n{"action":"list"}`, { mode: 0o600 });
    await requests.check();
    const uid = process.geteuid?.();
    t.same(asked, [
      { kind: 'adminRecover', body: '', uid },
      { kind: 'mcpServers', body: '{"action":"list"}', uid },
    ]);
    for (const kind of ['adminRecover', 'mcpServers'] as const) {
      const file = answerFileOf(dataPath, kind, NONCE);
      t.equal(readFileSync(file, 'utf8'), `${ADDRESS}\n`);
      t.equal(statSync(file).mode & 0o777, 0o600);
    }
    t.same(written, []);
    requests.stop();
    t.same(readdirSync(dataPath), [], 'an answer that was not read');
  },
);

// covers S138
t.test('folder requests: a file that others could have written is refused and removed', async (t) => {
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
      const { dataPath, asked, written, requests, request } = start(t);
      make(request);
      await requests.check();
      t.same({ written, asked }, { written: ['adminRecoveryRefused'], asked: [] });
      t.same(
        readdirSync(dataPath).filter((each) => !each.endsWith('.other')),
        [],
      );
    });
  }
});
