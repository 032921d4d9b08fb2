/** Removal of files: authentication, the form of a request, and the result of one that fails. */
import t, { type Test } from 'tap';
import { uploadSlots } from '../../../../src/actors/files/v1/upload-slots.ts';
import type { AuditRecord } from '../../../../src/actors/runtime/actor.ts';
import { GatewayError } from '../../../../src/domain/errors.ts';
import type { FileKey } from '../../../../src/domain/files/files.ts';
import { FileMetadataCache } from '../../../../src/io/files/download/file-cache.ts';
import { FileRemovals, REMOVALS_BODY_MAX_BYTES } from '../../../../src/io/files/storage/removals.ts';
import type { ChatFile } from '../../../../src/io/modules/chat-files.ts';
import { createModuleKeys } from '../../../../src/io/modules/module-keys.ts';
import { createMetrics } from '../../../../src/io/observability/metrics.ts';
import { createInternalRoutes } from '../../../../src/io/routes/internal.ts';
import { promiseOf, START_MS, startHttp } from '../../../support/http.ts';

const CHAT_KEY = 'chat-key-0123456789ab';
const WALLET_KEY = 'wallet-key-0123456789';

/** Every file is there; `remove` may be replaced. */
async function startRemovals(t: Test, remove: (key: FileKey) => Promise<boolean> = async () => true) {
  const removed: string[] = [];
  const audited: AuditRecord[] = [];
  const forgotten: string[] = [];
  const removals = new FileRemovals({
    keys: createModuleKeys(
      new Map([
        ['chat', CHAT_KEY],
        ['wallet', WALLET_KEY],
        ['core', undefined],
      ]),
    ),
    actors: {
      // Owner 8 uploads file 80 by chunks, and another user streams file 8100.
      query: (async (definition: { kind: string }, id: string) => {
        if (definition.kind === uploadSlots.kind) return [{ userId: '8' }, { userId: '9' }];
        if (id !== '8') throw new Error('unexpected query of another actor');
        return ['80'];
      }) as never,
      lookup: (_index, fileId) => (fileId === '8100' ? 'place' : undefined),
      audit: (record) => audited.push(record),
    },
    storage: {
      async removeFinished(key) {
        const gone = await remove(key);
        removed.push(`${key.owner}/${key.fileId}`);
        return gone;
      },
    },
    fileCache: { forget: (fileIds) => forgotten.push(...fileIds) },
    clock: () => START_MS,
  });
  const facts = () => {
    throw new Error('not asked');
  };
  const intake = {
    push: () => Promise.reject(new Error('not asked')),
    counters: () => ({ refusedKey: 0, refusedInput: 0 }),
  };
  const fixture = await startHttp({
    routes: createInternalRoutes({ metrics: createMetrics(), health: facts, events: intake, removals }),
  });
  t.teardown(() => fixture.close());
  const ask = async (key: string | undefined, body: string | object) => {
    const response = await fetch(`${fixture.url}/internal/v1/files/remove`, {
      method: 'POST',
      headers: key === undefined ? {} : { 'x-module-key': key },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    const answer = (await response.json()) as { result?: object; error?: { code: number; detail?: string } };
    return { status: response.status, ...answer };
  };
  return { ask, removed, audited, forgotten };
}

const file = (fileId: string, ownerId = '7') => ({ fileId, ownerId });

// covers R6
t.test('removals: each file once, no upload under way, and an audit record with the number', async (t) => {
  const { ask, removed, audited, forgotten } = await startRemovals(t, async ({ fileId }) => fileId !== '3');
  const files = [file('1'), file('2'), file('1'), file('3'), file('80', '8'), file('8100'), file('82', '8')];
  t.same(await ask(CHAT_KEY, { files }), { status: 200, result: { removed: 3 } });
  t.same(removed.sort(), ['7/1', '7/2', '7/3', '8/82']);
  t.same(forgotten.sort(), ['1', '2', '3', '80', '8100', '82']);
  const fields = { module: 'chat', asked: 6, removed: 3, failed: false };
  t.same(audited, [{ utcMs: START_MS, event: 'file_removed', userId: null, fields }]);
  t.same(await ask(CHAT_KEY, { files: [] }), { status: 200, result: { removed: 0 } });
  t.equal(audited.length, 1, 'nothing removed leaves no record');
});

t.test('removals: 401 without a key, with a wrong one, and with that of another module', async (t) => {
  const { ask, removed } = await startRemovals(t);
  for (const key of [undefined, '', 'wrong', `${CHAT_KEY}x`, WALLET_KEY, 'undefined'])
    t.match(await ask(key, { files: [file('1')] }), { status: 401, error: { code: 1103 } }, String(key));
  t.match(await ask(undefined, 'x'), { status: 401 }, 'the key before the body');
  t.same(removed, []);
});

t.test('removals: a request that is malformed anywhere removes nothing', async (t) => {
  const { ask, removed } = await startRemovals(t);
  const good = file('1');
  for (const bad of [
    {},
    null,
    7,
    { fileId: '2' },
    { fileId: 2, ownerId: '7' },
    file('../2'),
    file('02'),
    file('-2'),
  ])
    t.match(
      await ask(CHAT_KEY, { files: [good, bad] }),
      { status: 400, error: { code: 1001 } },
      JSON.stringify(bad),
    );
  t.match(await ask(CHAT_KEY, { files: [good, file('1', '9223372036854775808')] }), {
    status: 400,
    error: { detail: 'files.1.ownerId: a decimal int64 as a string is required' },
  });
  for (const body of ['', '[]', '{', '{}', '{"files":{}}', '7'])
    t.match(await ask(CHAT_KEY, body), { status: 400, error: { code: 1001 } }, body);
  const many = Array.from({ length: 1_001 }, (_, index) => file(String(index)));
  t.match(await ask(CHAT_KEY, { files: many }), { status: 400, error: { detail: 'files: at most 1000' } });
  t.match(await ask(CHAT_KEY, ' '.repeat(REMOVALS_BODY_MAX_BYTES + 1)), { status: 413 });
  t.same(removed, []);
  t.match(await ask(CHAT_KEY, { files: many.slice(1) }), { status: 200, result: { removed: 1_000 } });
});

// covers R6
t.test('removals: a storage that fails is 1312 with no count; a repetition removes the rest', async (t) => {
  const gone = new Set<string>();
  let broken = true;
  const { ask, audited } = await startRemovals(t, async ({ fileId }) => {
    if (broken && fileId === '5') throw new GatewayError('FileStorageFailed');
    if (gone.has(fileId)) return false;
    gone.add(fileId);
    return true;
  });
  const files = Array.from({ length: 100 }, (_, index) => file(String(index)));
  const failed = await ask(CHAT_KEY, { files });
  t.match(failed, { status: 503, error: { code: 1312 } });
  t.notOk('result' in failed);
  t.ok(gone.size < 100, 'no more are tried once one has failed');
  t.match(audited, [{ fields: { asked: 100, removed: gone.size, failed: true } }]);
  broken = false;
  const left = 100 - gone.size;
  t.same(await ask(CHAT_KEY, { files }), { status: 200, result: { removed: left } });
});

t.test('removals: the fifth request at once is 503, and the others end', async (t) => {
  let open: () => void = () => undefined;
  const held = new Promise<boolean>((resolve) => {
    open = () => resolve(true);
  });
  let begun = 0;
  const { promise: four, resolve: allBegun } = promiseOf();
  const { ask } = await startRemovals(t, () => {
    begun += 1;
    if (begun === 4) allBegun();
    return held;
  });
  const running = ['1', '2', '3', '4'].map((id) => ask(CHAT_KEY, { files: [file(id)] }));
  await four;
  t.match(await ask(CHAT_KEY, { files: [file('5')] }), { status: 503, error: { code: 1003 } });
  open();
  for (const each of await Promise.all(running)) t.same(each, { status: 200, result: { removed: 1 } });
});

t.test('removals: the file cache forgets a file, also while it is being requested', async (t) => {
  const described: ChatFile = {
    fileId: '1',
    ownerId: '7',
    name: 'a',
    sizeBytes: 1,
    crc32: 0,
    sha256: undefined,
    sentMs: 0,
    contentType: undefined,
  };
  const answers: (() => void)[] = [];
  const fileCache = new FileMetadataCache({
    describe: (fileId) =>
      new Promise((resolve) => answers.push(() => resolve({ ok: true, value: { ...described, fileId } }))),
  });
  const first = fileCache.find('1', '7', START_MS);
  const other = fileCache.find('11', '7', START_MS);
  fileCache.forget(new Set(['1']));
  const second = fileCache.find('1', '7', START_MS);
  t.equal(answers.length, 3, 'who asks after it asks anew');
  for (const answer of answers) answer();
  await Promise.all([first, other, second]);
  t.ok(fileCache.known('1', '7', START_MS));
  fileCache.forget(new Set(['1']));
  t.equal(fileCache.known('1', '7', START_MS), undefined);
  t.ok(fileCache.known('11', '7', START_MS), 'and no other');
});
