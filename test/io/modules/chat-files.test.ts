/** The gateway's own calls about files, against the sandbox's chat module: success, repeats, and every kind of failure. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import type { PendingFile } from '../../../src/actors/runtime/ports.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { ModuleResult } from '../../../src/io/http-client/types.ts';
import { chatFilesOf, createChatFiles } from '../../../src/io/modules/chat-files.ts';
import { createModuleClient, type ModuleClient } from '../../../src/io/modules/client.ts';
import { startSandbox } from '../../../src/sandbox/start.ts';
import { freshBounds } from '../../support/actors/bounds.ts';

async function opened(t: Test) {
  const sandbox = closeAfter(t, await startSandbox({ dataPath: t.testdir({}) }));
  const modules = closeAfter(t, createModuleClient({ clock: Date.now, bounds: freshBounds() }));
  const blocked = new Set<string>();
  const files = createChatFiles({
    modules,
    chatUrl: sandbox.modules.chat ?? '',
    project: 'test',
    newRequestId: () => 'r1',
    isBlocked: (userId) => {
      if (userId === '13') throw new GatewayError('Quarantined');
      if (userId === '14') throw new GatewayError('Overloaded');
      if (userId === '15') throw new GatewayError('JournalUnavailable');
      return blocked.has(userId);
    },
    textOf: async ({ owner }) => (owner === '7' ? 'the beginning' : undefined),
  });
  const fault = (mode: string) =>
    fetch(`${sandbox.url}/sandbox/v1/fault`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ module: 'chat', mode }),
    });
  const ask = async (userId: string, path: string, body?: object) => {
    const response = await fetch(`${sandbox.url}/chat/v1/${path}`, {
      headers: { 'x-crm': userId, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    return (await response.json()) as { result: Record<string, unknown> };
  };
  return { files, fault, ask, blocked };
}

const FILE: PendingFile = { uploadKey: 'k', userId: '7', chatId: '1', name: 'a.txt', sizeBytes: 5 };
/** A chat module that answers as the test says. */
function filesOver(call: ModuleClient['call']) {
  const options = { project: 'test', newRequestId: () => 'r', isBlocked: () => false };
  return createChatFiles({ modules: { call }, chatUrl: 'http://chat.test/base', ...options });
}

function answer(status: number, body: string): ModuleResult {
  const content = { contentType: 'application/json', headers: {}, body: Buffer.from(body) };
  return { ok: true, answer: { status, ...content }, elapsedMs: 1 };
}

const refused = (error: string) => ({ ok: false, error });

t.test('chat files: created, completed, described; each call may be repeated', async (t) => {
  const { files, ask } = await opened(t);
  const { result: said } = await ask('7', 'messages/send', { chatId: '1', text: 'look' });
  const linkedMessageId = String(said['id']);
  const file = { ...FILE, message: 'here', linkedMessageId, declaredCrc32: '0xABC' };
  const created = await files.create(file);
  t.match(created, { ok: true, value: { fileId: /^[0-9]+$/ } });
  t.same(await files.create(file), created, 'the same key');
  const fileId = created.ok ? created.value.fileId : '';
  t.same(await files.describe(fileId, null), refused('FileNotFound'), 'pending');
  const sha256 = 'ab'.repeat(32);
  const complete = { fileId, userId: '7', sizeBytes: 5, crc32: 0xffff_ffff, sha256 };
  t.same(await files.complete(complete), { ok: true, value: null });
  t.same(await files.complete(complete), { ok: true, value: null }, 'again');
  t.match(await ask('7', `files/text?fileId=${fileId}`), { result: { text: 'the beginning' } });
  const described = { fileId, ownerId: '7', name: 'a.txt', sizeBytes: 5, crc32: 0xffff_ffff };
  const read = await files.describe(fileId, null);
  t.match(read, { ok: true, value: described });
  t.equal(read.ok && read.value.sha256?.toString('hex'), sha256);
  t.ok(read.ok && Math.abs(read.value.sentMs - Date.now()) < 60_000, 'when it was sent');
  const { result } = await ask('7', 'messages/list?chatId=1');
  t.match(result['messages'], [{ id: fileId, text: 'here', replyToId: linkedMessageId }, { text: 'look' }]);
  t.match(await ask('7', `files/info?fileId=${fileId}`), { result: { declaredCrc32: '0xABC' } });
  t.same(await files.cancel('k'), { ok: true, value: null });
  t.same(await files.describe(fileId, '7'), refused('FileNotFound'), 'given up');
  t.same(await files.create(file), refused('ChartApiFileError'), 'late');
  t.same(await files.complete(complete), refused('ChartApiFileError'), 'late');
});

t.test(
  'chat files: without a chat in the personal one, of unknown size; no other user may read it',
  async (t) => {
    const { files, ask } = await opened(t);
    const created = await files.create({ ...FILE, chatId: null, sizeBytes: null });
    const fileId = created.ok ? created.value.fileId : '';
    t.match(await files.complete({ fileId, userId: '7', sizeBytes: 1, crc32: 0 }), { ok: true });
    const { result: info } = await ask('7', `files/info?fileId=${fileId}`);
    t.match(await ask('7', `chats/info?chatId=${info['chatId']}`), { result: { kind: 'personal' } });
    t.match(await files.describe(fileId, '7'), { ok: true, value: { sizeBytes: 1 } });
    t.same(await files.describe(fileId, '8'), refused('Forbidden'));
    t.match(await files.describe(fileId, null), { ok: true }, 'by its code');
  },
);

t.test('chat files: users outside the chat, blocked users and unknown chats are Forbidden', async (t) => {
  const { files, ask, blocked } = await opened(t);
  await ask('8', 'chats/list');
  const { result: group } = await ask('7', 'chats/create', { name: 'Climbing', memberIds: ['8'] });
  const chatId = String(group['id']);
  t.same(await files.create({ ...FILE, userId: '9', chatId }), refused('Forbidden'));
  t.same(await files.create({ ...FILE, chatId: '99' }), refused('Forbidden'));
  const created = await files.create({ ...FILE, userId: '8', chatId });
  const complete = { fileId: created.ok ? created.value.fileId : '', userId: '8', sizeBytes: 5, crc32: 1 };
  blocked.add('8');
  t.same(await files.complete(complete), refused('Forbidden'), 'blocked');
  t.same(await files.complete({ ...complete, userId: '13' }), refused('ChartApiFileError'), 'unknown state');
  t.same(await files.complete({ ...complete, userId: '14' }), refused('Overloaded'), 'its owner changes');
  t.same(await files.complete({ ...complete, userId: '15' }), refused('JournalUnavailable'), 'no lease');
  blocked.clear();
  await ask('8', 'chats/leave', { chatId });
  t.same(await files.complete(complete), refused('Forbidden'), 'has left');
});

t.test('chat files: a linked message that is not in the chat is LinkedMessageNotFound', async (t) => {
  const { files, ask } = await opened(t);
  const { result: other } = await ask('7', 'chats/create', { name: 'Climbing' });
  const { result: said } = await ask('7', 'messages/send', { chatId: String(other['id']), text: 'look' });
  for (const linkedMessageId of ['3', String(said['id'])])
    t.same(await files.create({ ...FILE, linkedMessageId }), refused('LinkedMessageNotFound'));
  t.same(
    await files.create({ ...FILE, userId: '9', chatId: String(other['id']), linkedMessageId: '3' }),
    refused('Forbidden'),
    'users outside the chat learn nothing about messages',
  );
  t.same(await files.create({ ...FILE, chatId: '99', linkedMessageId: '3' }), refused('Forbidden'));
});

t.test('chat files: only 404 with 2204 to a linked message is about that message', async (t) => {
  const rows: [number, string, string | undefined, string][] = [
    [404, '{"error":{"code":2204}}', '3', 'LinkedMessageNotFound'],
    [404, '{"error":{"code":2204}}', undefined, 'Forbidden'],
    [404, '{"error":{"code":2201}}', '3', 'Forbidden'],
    [404, '{"error":"2204"}', '3', 'Forbidden'],
    [404, '<html>', '3', 'Forbidden'],
    [403, '{"error":{"code":2204}}', '3', 'Forbidden'],
    [500, '{"error":{"code":2204}}', '3', 'ChartApiFileError'],
  ];
  for (const [status, body, linkedMessageId, expected] of rows) {
    const files = filesOver(async () => answer(status, body));
    t.same(await files.create({ ...FILE, linkedMessageId }), refused(expected), `${status} ${body}`);
  }
});

t.test(
  'chat files: a module that is down, answers 500 or is cut off has failed; a completion may be done',
  async (t) => {
    const { files, fault } = await opened(t);
    for (const mode of ['down', 'error', 'cut']) {
      await fault(mode);
      t.same(await files.create({ ...FILE, uploadKey: mode }), refused('ChartApiFileError'), mode);
      t.same(
        await files.create({ ...FILE, uploadKey: mode, chatId: null }),
        refused('ChartApiFileError'),
        mode,
      );
      t.same(
        await files.complete({ fileId: '5', userId: '7', sizeBytes: 1, crc32: 1 }),
        refused(mode === 'error' ? 'ChartApiFileError' : 'ModuleFailed'),
      );
      t.same(await files.cancel(mode), refused('ChartApiFileError'));
      t.same(await files.describe('5', null), refused('ModuleFailed'));
    }
    await fault('ok');
    t.same(await files.cancel('cut'), { ok: true, value: null }, 'what the cut call had made is given up');
  },
);

t.test('chat files: a completion that no module has judged says so', async (t) => {
  const file = { fileId: '5', userId: '7', sizeBytes: 1, crc32: 1 };
  for (const [status, row] of [
    [404, 'ChartApiFileError'],
    [500, 'ChartApiFileError'],
    [502, 'ModuleFailed'],
    [503, 'ModuleFailed'],
    [504, 'ModuleFailed'],
  ] as const)
    t.same(await filesOver(async () => answer(status, '{}')).complete(file), refused(row), `${status}`);
  for (const [error, row] of [
    ['Overloaded', 'Overloaded'],
    ['ModuleUnavailable', 'ModuleFailed'],
  ] as const)
    t.same(
      await filesOver(async () => ({ ok: false, error, reason: 'planted', elapsedMs: 0 })).complete(file),
      refused(row),
      error,
    );
});

t.test('chat files: an invalid answer of the chat module is a failure', async (t) => {
  const answers = ['', '[]', '{}', '{"result":null}', '{"result":{"fileId":"x","chatId":-1}}', '<html>'];
  for (const body of answers) {
    const files = filesOver(async () => answer(200, body));
    t.same(await files.create(FILE), refused('ChartApiFileError'), body);
    t.same(await files.create({ ...FILE, chatId: null }), refused('ChartApiFileError'), body);
    t.same(await files.describe('5', null), refused('ModuleFailed'), body);
  }
  const none = { modules: { call: async () => t.fail() as never }, project: '', newRequestId: () => '' };
  t.equal(chatFilesOf(undefined, { ...none, isBlocked: () => false }), undefined);
});

t.test('chat files: a content type that the module names is taken where it fits a header', async (t) => {
  const file = { fileId: '5', senderId: '7', name: 'a', sizeBytes: 1, crc32: 0 };
  const asked: [unknown, unknown][] = [
    ['image/png', 'image/png'],
    ['text/plain; charset=utf-8', 'text/plain; charset=utf-8'],
    ['image/png\r\nX: y', undefined],
    ['png', undefined],
    [null, undefined],
  ];
  for (const [contentType, expected] of asked) {
    const body = JSON.stringify({ result: { ...file, dateTime: '2026-01-02T03:04:05.678Z', contentType } });
    const described = await filesOver(async () => answer(200, body)).describe('5', null);
    t.equal(described.ok && described.value.contentType, expected, String(contentType));
  }
});

t.test(
  'chat files: the id of a personal chat is asked for once, and again when the chat is gone',
  async (t) => {
    const calls: string[] = [];
    let chat = 10;
    const files = filesOver(async ({ url, body }) => {
      const path = url.pathname.replace('/base/chat/v1/', '');
      const asked = body === undefined ? {} : (JSON.parse(String(body)) as Record<string, unknown>);
      calls.push(path === 'chats/personal' ? `${path} ${asked['userId']}` : `${path} in ${asked['chatId']}`);
      if (path === 'chats/personal') return answer(200, `{"result":{"chatId":"${chat}"}}`);
      if (asked['chatId'] !== String(chat)) return answer(404, '{"error":{"code":2202}}');
      if (asked['uploadKey'] === 'broken') return answer(500, '{}');
      return answer(200, '{"result":{"fileId":"5"}}');
    });
    const create = (more: Partial<PendingFile> = {}) => files.create({ ...FILE, chatId: null, ...more });
    const done = { ok: true, value: { fileId: '5' } };
    t.same(await create(), done);
    t.same(await create(), done);
    t.same(await create({ uploadKey: 'broken' }), refused('ChartApiFileError'));
    t.same(await create({ userId: '8' }), done);
    t.same(calls.splice(0), [
      'chats/personal 7',
      'files/create in 10',
      'files/create in 10',
      'files/create in 10',
      'chats/personal 8',
      'files/create in 10',
    ]);
    chat = 11;
    t.same(await create(), done);
    t.same(calls.splice(0), ['files/create in 10', 'chats/personal 7', 'files/create in 11']);
    t.same(await create({ chatId: '99' }), refused('Forbidden'));
    t.same(calls, ['files/create in 99'], 'a named chat is never replaced');
  },
);
