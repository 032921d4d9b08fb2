/** The sandbox chat: groups, private chats, messages, files, guests by invite code; and what each refuses. */
import fc from 'fast-check';
import t from 'tap';
import { ChatState, KeptTexts } from '../../src/sandbox/chat/state.ts';
import type { SandboxStore } from '../../src/sandbox/store.ts';
import { runs } from '../support/depth.ts';
import {
  asHolder,
  caller,
  type Fields,
  get,
  logPath,
  openStore,
  post,
  refusalOf,
  reopen,
  resultOf,
} from '../support/sandbox.ts';

const DEVICE = '6f1c2b8e-0d53-4a07-9a51-3f6a0c9d2e10';
const OTHER_DEVICE = '7f1c2b8e-0d53-4a07-9a51-3f6a0c9d2e10';

const as = (store: SandboxStore, crm: string | undefined) => caller(store, 'chat', crm);

function guest(store: SandboxStore, code: unknown, device: string | undefined = DEVICE) {
  const call =
    (method: 'GET' | 'POST') =>
    (verb: string, fields: Fields = {}) =>
      asHolder(store, 'chat', [method, `/chat/v1/anon/${verb}`], { code, ...fields }, device);
  const [read, act] = [call('GET'), call('POST')];
  return {
    read: async (verb: string) => resultOf(await read(verb)),
    act: async (verb: string, fields?: Fields) => resultOf(await act(verb, fields)),
    notRead: async (verb: string) => refusalOf(await read(verb)),
    notAct: async (verb: string, fields?: Fields) => refusalOf(await act(verb, fields)),
  };
}

/** Users 7, 8 and 9, who have all called; 7 owns a group with 8 in it. */
async function withGroup(store: SandboxStore) {
  const [ada, bob, eve] = [as(store, '7'), as(store, '8'), as(store, '9')];
  for (const one of [ada, bob, eve]) await one.read('chats/list');
  const group = await ada.act('chats/create', { name: 'Climbing', memberIds: ['8'] });
  return { ada, bob, eve, chatId: String(group['id']), group };
}

const textsOf = (page: Fields): unknown[] => (page['messages'] as Fields[]).map(({ text }) => text);

t.test('groups: owner, members, unread messages, archive, leaving and the heir', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const { ada, bob, eve, chatId, group } = await withGroup(store);
  t.match(group, { kind: 'group', ownerId: '7', members: 2, unread: 0, lastMessage: null });
  const sent = await ada.act('messages/send', { chatId, text: 'hello' });
  await ada.act('messages/send', { chatId, text: 'again', replyToId: sent['id'] });
  t.match(await bob.read('messages/unread'), { chats: [{ chatId, unread: 2 }], total: 2 });
  t.match(await ada.read('messages/unread'), { chats: [], total: 0 }, 'own ones are read');
  t.match(await bob.act('messages/mark_read', { chatId, messageId: sent['id'] }), { unread: 1 });
  t.match(await bob.act('messages/mark_read', { chatId }), { unread: 0 });
  t.match(
    await bob.act('messages/mark_read', { chatId, messageId: sent['id'] }),
    { unread: 0 },
    'never back',
  );
  t.match(await ada.act('members/add', { chatId, userId: '9' }), {
    members: [{ id: '7', role: 'owner' }, { id: '8' }, { id: '9', role: 'member', anonymous: false }],
  });
  t.match(textsOf(await eve.read('messages/list', { chatId })), ['again', 'hello']);
  t.match(await bob.act('chats/archive', { chatId }), { archived: true });
  const listed = async (archived: string) =>
    ((await bob.read('chats/list', { archived }))['chats'] as Fields[]).map(({ kind }) => kind);
  t.strictSame([await listed('false'), await listed('true')], [['lobby', 'personal'], ['group']]);
  t.match(await bob.act('chats/archive', { chatId, archived: false }), { archived: false });
  t.strictSame(await ada.act('chats/leave', { chatId }), { chatId });
  t.match(await bob.read('chats/info', { chatId }), { ownerId: '8', members: 2 });
  t.strictSame(await ada.notRead('chats/info', { chatId }), [403, 2202]);
  const again = await reopen(t, store, path);
  t.match(await as(again, '8').read('chats/info', { chatId }), { ownerId: '8', unread: 0 });
  for (const crm of ['8', '9']) await as(again, crm).act('chats/leave', { chatId });
  t.strictSame(await as(again, '8').notRead('chats/info', { chatId }), [404, 2201], 'the last one ends it');
  const { body: events } = await again.events('chat', new Map());
  const heard = (JSON.parse(events).result.events as Fields[]).map(({ crmId }) => crmId);
  t.strictSame(heard, ['7', '8', '7', '8'], 'each user of the group is notified of each message');
});

t.test('private chats: one for two people, friends on both sides, gone for both when deleted', async (t) => {
  const store = await openStore(t);
  const { ada, bob, eve } = await withGroup(store);
  const made = await ada.act('chats/create_private', { userId: '8' });
  const chatId = String(made['id']);
  t.equal((await bob.act('chats/create_private', { userId: 7 }))['id'], chatId);
  t.strictSame(await bob.read('friends/list'), { friends: [{ userId: '7', chatId }] });
  t.strictSame(await eve.notRead('messages/list', { chatId }), [403, 2202]);
  t.strictSame(await ada.notAct('members/add', { chatId, userId: '9' }), [409, 2209]);
  t.strictSame(await ada.notAct('invites/renew', { chatId }), [409, 2209]);
  const sent = await ada.act('messages/send', { chatId, text: 'x' });
  t.strictSame(await bob.act('chats/hard_delete', { chatId }), { chatId });
  t.strictSame(await ada.notAct('messages/edit', { messageId: sent['id'], text: 'y' }), [404, 2204]);
  t.strictSame(await ada.read('friends/list'), { friends: [] });
});

t.test('messages: edited by their sender, deleted by sender or owner, pinned by members', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const { ada, bob, eve, chatId } = await withGroup(store);
  const ids: unknown[] = [];
  for (const text of ['one', 'two', 'three'])
    ids.push((await bob.act('messages/send', { chatId, text }))['id']);
  const [one, two, three] = ids;
  t.match(await bob.act('messages/edit', { messageId: one, text: 'first' }), {
    text: 'first',
    editedUtc: /Z$/,
  });
  t.strictSame(await ada.notAct('messages/edit', { messageId: one, text: 'x' }), [403, 2205]);
  t.strictSame(
    await eve.notAct('messages/edit', { messageId: one, text: 'x' }),
    [404, 2204],
    'not to be probed',
  );
  t.match(await ada.act('messages/pin', { messageId: one }), { pinned: true });
  t.match(await bob.read('messages/pinned', { chatId }), {
    messages: [{ id: one, text: 'first' }],
  });
  t.match(await ada.act('messages/soft_delete', { messageId: two }), { text: '', deleted: true });
  for (const [path, body] of [
    ['edit', { text: 'x' }],
    ['pin', {}],
  ] as const)
    t.strictSame(await bob.notAct(`messages/${path}`, { messageId: two, ...body }), [409, 2206], path);
  t.match(await ada.act('messages/soft_delete', { messageId: two }), { deleted: true }, 'twice is once');
  t.strictSame(await bob.act('messages/hard_delete', { messageId: three }), { id: three, chatId });
  t.strictSame(await bob.notAct('messages/hard_delete', { messageId: three }), [404, 2204]);
  const own = await ada.act('messages/send', { chatId, text: 'mine' });
  for (const verb of ['soft_delete', 'hard_delete'])
    t.strictSame(await bob.notAct(`messages/${verb}`, { messageId: own['id'] }), [403, 2205], verb);
  const again = await reopen(t, store, path);
  t.strictSame(textsOf(await as(again, '8').read('messages/list', { chatId })), ['mine', '', 'first']);
  t.match(await as(again, '8').act('messages/pin', { messageId: one, pinned: false }), {
    pinned: false,
  });
});

t.test('chat: every refusal has its code and changes nothing', async (t) => {
  const store = await openStore(t);
  const { ada, bob, eve, chatId } = await withGroup(store);
  const { id: lobbyMessage } = await ada.act('messages/send', { chatId: '1', text: 'x' });
  const personal = ((await ada.read('chats/list'))['chats'] as Fields[])[1]?.['id'];
  const gateway = as(store, undefined);
  const file = { userId: '7', uploadKey: 'a', name: 'x' };
  const acts: [ReturnType<typeof as>, string, Fields, number][] = [
    [ada, 'chats/create', {}, 2002],
    [ada, 'chats/create', { name: 'x'.repeat(65) }, 2002],
    [ada, 'chats/create', { name: 'x', memberIds: '8' }, 2002],
    [ada, 'chats/create', { name: 'x', memberIds: ['10'] }, 2207],
    [ada, 'chats/create', { name: 'x', memberIds: Array.from({ length: 200 }, () => '8') }, 2002],
    [ada, 'chats/create_private', { userId: '7' }, 2002],
    [ada, 'chats/create_private', { userId: '10' }, 2207],
    [ada, 'members/add', { chatId, userId: '10' }, 2207],
    [bob, 'members/add', { chatId, userId: '9' }, 2208],
    [bob, 'invites/renew', { chatId }, 2208],
    [bob, 'chats/hard_delete', { chatId }, 2208],
    [eve, 'chats/leave', { chatId }, 2202],
    [ada, 'chats/leave', { chatId: '1' }, 2209],
    [ada, 'chats/leave', { chatId: personal }, 2209],
    [ada, 'chats/hard_delete', { chatId: '1' }, 2209],
    [ada, 'chats/archive', { chatId, archived: 'yes' }, 2002],
    [ada, 'messages/pin', { messageId: lobbyMessage }, 2209],
    [ada, 'messages/pin', { messageId: lobbyMessage, pinned: 1 }, 2002],
    [ada, 'messages/send', { chatId, text: 'x', replyToId: lobbyMessage }, 2204],
    [bob, 'messages/send', { chatId: '99', text: 'x' }, 2201],
    [bob, 'messages/send', { chatId: 'x', text: 'x' }, 2002],
    ...[undefined, '', '  ', 5, 'x'.repeat(4097)].map((text): [typeof ada, string, Fields, number] => [
      bob,
      'messages/send',
      { chatId: '1', text },
      2203,
    ]),
    [ada, 'messages/mark_read', { chatId, messageId: lobbyMessage }, 2204],
    [ada, 'messages/edit', { messageId: lobbyMessage, text: ' ' }, 2203],
    [bob, 'messages/hard_delete', { messageId: lobbyMessage }, 2205],
    [ada, 'files/create', { ...file, chatId }, 2007],
    [gateway, 'files/create', { ...file, chatId, name: '' }, 2002],
    [gateway, 'files/create', { ...file, chatId, uploadKey: '' }, 2002],
    [gateway, 'files/create', { ...file, chatId, sizeBytes: -1 }, 2002],
    [gateway, 'files/create', { ...file, chatId, crc32: 7 }, 2002],
    [gateway, 'files/create', { ...file, chatId, linkedMessageId: '3' }, 2204],
    [gateway, 'files/create', { ...file, chatId, userId: '9' }, 2202],
    [gateway, 'files/create', { ...file, chatId: '77' }, 2201],
    [gateway, 'files/create', { ...file, chatId, userId: undefined }, 2002],
  ];
  const codes: unknown[] = [];
  for (const [who, path, body] of acts) codes.push([path, body, (await who.notAct(path, body))[1]]);
  t.same(
    codes,
    acts.map(([, ...row]) => row),
  );
  t.equal((await ada.notRead('chats/list', { archived: 'x' }))[1], 2002);
  t.match(await bob.read('chats/info', { chatId }), {
    ownerId: '7',
    members: 2,
    lastMessage: null,
  });
});

t.test(
  'files: no user sees a pending one; completed, it is a message that its readers can read',
  async (t) => {
    const path = await logPath(t);
    const store = await openStore(t, path);
    const { ada, bob, eve, chatId } = await withGroup(store);
    const gateway = as(store, undefined);
    const file = { userId: '7', chatId, uploadKey: 'a', name: 'notes.txt', text: 'see', crc32: 'CAFE' };
    const { fileId } = await gateway.act('files/create', file);
    t.equal((await gateway.act('files/create', file))['fileId'], fileId, 'the same key, the same file');
    const query = { fileId: String(fileId) };
    t.strictSame(await bob.notRead('files/info', query), [404, 2213]);
    t.strictSame(await gateway.notRead('files/describe', query), [404, 2213]);
    t.strictSame((await bob.read('messages/list', { chatId }))['messages'], []);
    t.strictSame(await ada.notAct('messages/hard_delete', { messageId: fileId }), [404, 2204]);
    const complete = { fileId, sizeBytes: 5, crc32: 907_060_870, content: 'hello' };
    t.strictSame(await ada.notAct('files/complete', complete), [403, 2007], 'by the gateway alone');
    for (const bad of [{ sizeBytes: '5' }, { crc32: 2 ** 32 }, { content: 'x'.repeat(32_769) }])
      t.strictSame(await gateway.notAct('files/complete', { ...complete, ...bad }), [400, 2002]);
    const done = { name: 'notes.txt', sizeBytes: 5, declaredCrc32: 'CAFE' };
    t.match(await gateway.act('files/complete', complete), done);
    t.match(await gateway.act('files/complete', complete), done, 'again: no harm');
    t.strictSame(await gateway.notAct('files/complete', { ...complete, crc32: 1 }), [404, 2213]);
    t.strictSame(await bob.read('files/text', query), {
      ...query,
      name: 'notes.txt',
      text: 'hello',
    });
    t.strictSame(await eve.notRead('files/text', query), [404, 2213], 'not in that chat');
    t.match(await gateway.read('files/describe', query), { ...done, senderId: '7' });
    t.match(await gateway.read('files/describe', { ...query, userId: '8' }), done);
    t.strictSame(await gateway.notRead('files/describe', { ...query, userId: '9' }), [403, 2202]);
    t.strictSame(await bob.notRead('files/describe', query), [403, 2007]);
    const { messages } = await bob.read('messages/list', { chatId });
    t.match(messages, [{ text: 'see', file: query }]);
    t.equal((messages as unknown[]).length, 1, 'one message');
    const second = await gateway.act('files/create', { ...file, uploadKey: 'b', name: 'a.png' });
    await gateway.act('files/complete', { fileId: second['fileId'], sizeBytes: 1, crc32: 1 });
    t.strictSame(await bob.notRead('files/text', { fileId: String(second['fileId']) }), [409, 2214]);
    await ada.act('messages/soft_delete', { messageId: fileId });
    t.strictSame(await bob.notRead('files/text', query), [404, 2213], 'deleted with its message');
    t.strictSame(await gateway.notRead('files/describe', query), [404, 2213]);
    const again = await reopen(t, store, path);
    t.match(await as(again, '8').read('files/list', { chatId }), {
      files: [{ name: 'a.png', crc32: 1 }],
    });
  },
);

t.test('files: of texts the newest are kept, and none of a file that is gone', async (t) => {
  const texts = new KeptTexts(10);
  texts.keep('1', 'four');
  texts.keep('2', 'four');
  texts.keep('3', 'so');
  t.equal(texts.characters, 10);
  texts.keep('4', '!');
  t.same(
    ['1', '2', '3', '4'].map((id) => texts.get(id)),
    [undefined, 'four', 'so', '!'],
    'the oldest is dropped',
  );
  texts.keep('3', 'other');
  texts.forget('2');
  texts.forget('2');
  t.equal(texts.characters, 6);
  texts.keep('5', 'longer than all of them');
  t.equal(texts.characters, 0, 'a text above the bound is not kept');
  const state = new ChatState();
  const ended = { complete: true, sizeBytes: 5, crc32: 1, content: 'hello', eventIds: [] };
  const of = { module: 'chat', utcMs: 0 } as const;
  state.apply({ ...of, type: 'joined', tick: '10', userId: '7', personalChatId: '10' });
  const file = { chatId: '10', senderId: '7', name: 'a.txt', text: '', sizeBytes: 5 };
  state.apply({ ...of, type: 'fileCreated', tick: '11', fileId: '11', ...file });
  state.apply({ ...of, type: 'fileEnded', tick: '12', fileId: '11', ...ended });
  t.equal(state.texts.get('11'), 'hello');
  state.apply({ ...of, type: 'messageChanged', tick: '13', messageId: '11', change: 'hard', text: null });
  t.equal(state.texts.characters, 0, 'gone with its message');
});

t.test('files: given up by the key of the upload, in every state, before it comes as well', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const { bob, chatId } = await withGroup(store);
  const gateway = as(store, undefined);
  const created = (uploadKey: string, userId = '7') => ({
    userId,
    chatId,
    uploadKey,
    name: 'b.png',
    linkedMessageId: null,
  });
  const lost = await gateway.act('files/create', created('a'));
  t.strictSame(await gateway.act('files/cancel', { uploadKey: 'a' }), lost);
  t.strictSame(await gateway.act('files/cancel', { uploadKey: 'a' }), { fileId: null });
  t.strictSame(await gateway.notAct('files/create', created('a')), [409, 2215], 'late');
  const late = { ...lost, sizeBytes: 1, crc32: 1 };
  t.strictSame(await gateway.notAct('files/complete', late), [404, 2213]);
  t.strictSame(await gateway.act('files/cancel', { uploadKey: 'never' }), { fileId: null });
  t.strictSame(await gateway.notAct('files/create', created('never')), [409, 2215]);
  const done = { ...(await gateway.act('files/create', created('b'))), sizeBytes: 1, crc32: 1 };
  await gateway.act('files/complete', done);
  await gateway.act('files/cancel', { uploadKey: 'b' });
  t.strictSame((await bob.read('messages/list', { chatId }))['messages'], [], 'completed and given up');
  t.strictSame(await gateway.notAct('files/cancel', {}), [400, 2002]);
  const left = { ...(await gateway.act('files/create', created('c', '8'))), sizeBytes: 1, crc32: 1 };
  await bob.act('chats/leave', { chatId });
  t.strictSame(await gateway.notAct('files/complete', left), [403, 2202], 'its sender has left');
  const { chatId: personal } = await gateway.act('chats/personal', { userId: '8' });
  t.equal((await gateway.act('chats/personal', { userId: '8' }))['chatId'], personal);
  t.match(await bob.read('chats/info', { chatId: String(personal) }), { kind: 'personal' });
  t.match(await gateway.act('chats/personal', { userId: '12' }), { chatId: /^[0-9]+$/ }, 'a new user');
  const again = await reopen(t, store, path);
  t.strictSame(await as(again, undefined).notAct('files/create', created('never')), [409, 2215]);
});

t.test('guests: read with the code, join with the first message, change their own alone', async (t) => {
  const path = await logPath(t);
  const store = await openStore(t, path);
  const { ada, bob, chatId } = await withGroup(store);
  const invites = (await ada.read('invites/list'))['invites'] as Fields[];
  t.match(invites, [{ chatId, name: 'Climbing', code: /^[\w-]{22}$/ }]);
  t.strictSame(await bob.read('invites/list'), { invites: [] });
  const code = invites[0]?.['code'];
  const gateway = as(store, undefined);
  const resolved = await gateway.read('capability/resolve', { code: String(code) });
  t.strictSame(resolved, { family: 'chat', scope: 'invite', id: chatId, expiresUtc: null });
  const said = await ada.act('messages/send', { chatId, text: 'welcome' });
  const [first, second] = [guest(store, code), guest(store, code, OTHER_DEVICE)];
  t.match(await first.read('info'), { name: 'Climbing', members: 2, memberId: null });
  t.strictSame(textsOf(await first.read('messages')), ['welcome']);
  for (const text of [undefined, '', 'x'.repeat(4097)])
    t.strictSame(await first.notAct('send_message', { text }), [400, 2203]);
  t.match(await first.read('info'), { members: 2 }, 'a refused message adds no member');
  const hi = await first.act('send_message', { text: 'hi', name: 'Ada' });
  t.match(await first.read('info'), { members: 3, memberId: hi['senderId'] });
  t.match(await bob.read('members/list', { chatId }), {
    members: [{}, {}, { id: hi['senderId'], anonymous: true, name: 'Ada' }],
  });
  t.equal(
    (await guest(store, code, DEVICE.toUpperCase()).act('send_message', { text: 'me' }))['senderId'],
    hi['senderId'],
  );
  t.match(await first.act('edit_message', { messageId: hi['id'], text: 'hey' }), { text: 'hey' });
  t.strictSame(await first.notAct('edit_message', { messageId: said['id'], text: 'x' }), [403, 2205]);
  t.strictSame(await second.notAct('edit_message', { messageId: hi['id'], text: 'x' }), [403, 2202]);
  t.strictSame(await first.notAct('soft_delete_message', { messageId: '5' }), [404, 2204]);
  t.match(await first.act('soft_delete_message', { messageId: hi['id'] }), { deleted: true });
  const devices = [undefined, '', 'x', `${DEVICE}0`, DEVICE.replaceAll('-', '')];
  for (const device of devices)
    t.strictSame(await guest(store, code, device ?? '').notRead('info'), [400, 2210], String(device));
  t.strictSame(await first.act('leave'), { chatId });
  t.strictSame(await first.notAct('leave'), [403, 2202]);
  const renewed = await ada.act('invites/renew', { chatId });
  t.not(renewed['code'], code);
  t.strictSame(await first.notRead('messages'), [404, 2009], 'the old code opens nothing');
  t.strictSame(await gateway.notRead('capability/resolve', { code: String(code) }), [404, 2009]);
  const again = await reopen(t, store, path);
  t.strictSame(textsOf(await guest(again, renewed['code']).read('messages')), ['me', '', 'welcome']);
  await as(again, '7').act('chats/hard_delete', { chatId });
  t.strictSame(await guest(again, renewed['code']).notRead('info'), [404, 2009]);
});

t.test(
  'chat: a replay shows the same over random steps, and unread counts never go below zero',
  async (t) => {
    const step = fc.record({
      user: fc.constantFrom('7', '8', '9'),
      act: fc.constantFrom('send', 'edit', 'soft_delete', 'hard_delete', 'mark_read', 'leave', 'add'),
      at: fc.nat({ max: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const path = await logPath(t);
        const store = await openStore(t, path);
        const { chatId } = await withGroup(store);
        const sent: unknown[] = ['1'];
        for (const { user, act, at } of steps) {
          const ask = (path: string, body: Fields) => post(store, `/chat/v1/${path}`, user, body);
          const messageId = sent[at % sent.length];
          if (act === 'send') {
            const answer = await ask('messages/send', { chatId, text: `${at}` });
            if (answer.status === 200) sent.push(resultOf(answer)['id']);
          } else if (act === 'leave') await ask('chats/leave', { chatId });
          else if (act === 'add') await ask('members/add', { chatId, userId: '9' });
          else
            await ask(`messages/${act}`, act === 'mark_read' ? { chatId } : { messageId, text: 'changed' });
        }
        const seen = (one: SandboxStore) =>
          Promise.all(
            ['7', '8', '9'].flatMap((user) => [
              get(one, '/chat/v1/chats/list', user),
              get(one, '/chat/v1/messages/list', user, { chatId }),
            ]),
          );
        const before = await seen(store);
        const again = await reopen(t, store, path);
        t.strictSame(await seen(again), before);
        t.notMatch(JSON.stringify(before), /unread[\\":]+-/);
        await again.close();
      }),
      runs(40),
    );
  },
);
