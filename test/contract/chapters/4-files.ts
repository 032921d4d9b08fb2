/** Contract, sections 4.6 and 4.7: the two file transports. */
import { type Check, checksOf } from '../check.ts';
import { type Answer, read } from '../client.ts';
import { fileSetting } from '../tables.ts';
import { expectOk } from '../unshown.ts';
import {
  CHUNK_BYTES,
  cancelUpload,
  crcOf,
  createDraft,
  draftOf,
  initUpload,
  smallFile,
  streamUpload,
  uploadPart,
  uploadV1,
  uploadV2,
} from '../uploads.ts';
import type { World } from '../world.ts';

export async function newChat(world: World, auth: Record<string, string>): Promise<string> {
  return String(read(await world.toolJson(auth, 'chat_create', { name: 'Files' }), 'result.id'));
}

const PERSONAL = ['0', '-5', undefined];

const V1 = checksOf('4.6', {
  'each v1 route is 401, code 1101, without the cookie and with a bearer': {
    sentence: 'File transport v1 (needs the session cookie sid)',
    async run(t, world) {
      const { auth } = await world.agent();
      const bytes = smallFile();
      for (const headers of [{}, auth]) {
        t.same((await initUpload(world, headers, bytes)).refusal, [401, 1101]);
        t.same((await uploadPart(world, headers, bytes, 0)).refusal, [401, 1101]);
        t.same((await cancelUpload(world, headers, 7)).refusal, [401, 1101]);
        t.same((await world.get('/auth/v1/file/1', headers)).refusal, [401, 1101]);
      }
    },
  },
  'a file with a message and a linked message opens an upload whose id is the CRC32; wrong types are 400': {
    sentence:
      'POST /auth/v1/file/init_upload | JSON { FileName: string, FileSize: integer, CRC32: integer, ChatId: string (int64), Message?: string, LinkedMessageId?: string (int64) } | { result: <integer uploadId> }. It is the CRC-32 that was declared.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const chatId = await newChat(world, auth);
      const first = await world.toolJson(auth, 'chat_send_message', { chatId, text: 'see below' });
      const bytes = smallFile();
      const fields = { ChatId: chatId, Message: 'the file', LinkedMessageId: read(first, 'result.id') };
      for (const wrong of [{ CRC32: 'x' }, { FileSize: 1.5 }, { FileName: 7 }, { ChatId: {} }])
        t.equal((await initUpload(world, person.auth, bytes, { ...fields, ...wrong })).status, 400);
      const { fileId } = await uploadV1(world, person, bytes, fields);
      const list = read(
        await world.toolJson(auth, 'chat_messages', { chatId }),
        'result.messages',
      ) as unknown[];
      const message = list.find((each) => read(each, 'id') === fileId);
      t.match(
        JSON.stringify(message),
        new RegExp(`the file.*${fields.LinkedMessageId}|${fields.LinkedMessageId}.*the file`),
      );
    },
  },
  'a message that is not in the chat is 404, code 1004, in both transports': {
    sentence: 'LinkedMessageId?: string (int64)',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const [chatId, other] = [await newChat(world, auth), await newChat(world, auth)];
      const elsewhere = await world.toolJson(auth, 'chat_send_message', { chatId: other, text: 'there' });
      for (const LinkedMessageId of ['1', String(read(elsewhere, 'result.id'))]) {
        const v1 = await initUpload(world, person.auth, smallFile(), { ChatId: chatId, LinkedMessageId });
        t.same(v1.refusal, [404, 1004]);
        t.equal(v1.at('error.message'), 'Linked message not found');
        const query = { fileName: 'a.bin', fileSize: 3, chatId, linkedMessageId: LinkedMessageId };
        t.same((await createDraft(world, person.auth, query)).refusal, [404, 1004]);
      }
    },
  },
  'chunks are numbered from 0; a form is 415, a missing query field is 4xx': {
    sentence:
      'POST /auth/v1/file/upload_part | Query uploadId, chunkNumber (from zero), chunkCrc32. The body is application/octet-stream, raw and not multipart.',
    async run(t, world) {
      const { auth } = await world.person();
      const bytes = smallFile();
      expectOk('init', await initUpload(world, auth, bytes));
      const query = `uploadId=${crcOf(bytes)}&chunkNumber=0&chunkCrc32=${crcOf(bytes)}`;
      const form = { ...auth, 'content-type': 'multipart/form-data; boundary=x' };
      const path = '/auth/v1/file/upload_part';
      t.equal((await world.send('POST', `${path}?${query}`, { headers: form, bytes })).status, 415);
      const short = await world.send('POST', `${path}?uploadId=${crcOf(bytes)}`, { headers: auth, bytes });
      t.ok(short.status >= 400 && short.status < 500, String(short.status));
      t.equal((await uploadPart(world, auth, bytes, 1)).at('error.code'), 1306);
      t.equal((await uploadPart(world, auth, bytes, 0)).status, 200);
    },
  },
  'two nulls are returned until the last missing chunk, in any order; then a file id and its code': {
    sentence:
      '{ result: { chunkNumber, fileId, fileCode } }. Before the last missing chunk, fileId and fileCode are null.',
    also: [
      [
        '3',
        'v1 upload | open | upload_part, chunks missing | the chunk number is in range, the chunk has at most 256 KB, its CRC-32 is right | open | The chunk is taken. The answer has its number, and null for file id and code.',
      ],
    ],
    async run(t, world) {
      const { auth } = await world.person();
      const bytes = smallFile(2 * CHUNK_BYTES + 1);
      expectOk('init', await initUpload(world, auth, bytes));
      for (const at of [2, 0])
        t.same((await uploadPart(world, auth, bytes, at)).at('result'), {
          chunkNumber: at,
          fileId: null,
          fileCode: null,
        });
      const last = await uploadPart(world, auth, bytes, 1);
      t.match(last.at('result'), { chunkNumber: 1, fileId: /^\d+$/, fileCode: /./ });
      t.type(last.at('result.fileId'), 'string');
    },
  },
  'a cancellation returns an empty success; an invalid id is 1305': {
    sentence: 'POST /auth/v1/file/cancel_upload | Query uploadId | Success without content.',
    async run(t, world) {
      const { auth } = await world.person();
      const bytes = smallFile();
      expectOk('init', await initUpload(world, auth, bytes));
      const done = expectOk('cancel', await cancelUpload(world, auth, crcOf(bytes)));
      t.ok(done.text === '' || done.at('result') === null, done.text);
      t.equal((await cancelUpload(world, auth, crcOf(bytes))).at('error.code'), 1305);
    },
  },
  'the whole file and each chunk have the three headers: CRC32 of the file, whole-file, part-0/2; one past the end is 400':
    {
      sentence:
        'GET /auth/v1/file/{fileId} | Query part_number, optional (chunks of 256 KB, from zero) | The bytes. A chunk has the headers X-Chunk-CRC32, X-File-Part, Cache-Control. … X-Chunk-CRC32 is the CRC-32 of the whole file, from the metadata of the chat. The values of X-File-Part are whole-file and part-N/total.',
      async run(t, world) {
        const person = await world.person();
        const { fileId, bytes } = await uploadV1(world, person, smallFile(CHUNK_BYTES + 5));
        const get = (query: string) => world.get(`/auth/v1/file/${fileId}${query}`, person.auth);
        const shown = (answer: Answer) => [answer.header('x-chunk-crc32'), answer.header('x-file-part')];
        const crc = String(crcOf(bytes));
        const whole = await get('');
        t.same(shown(whole), [crc, 'whole-file']);
        t.ok(whole.bytes.equals(bytes));
        for (const at of [0, 1]) {
          const answer = await get(`?part_number=${at}`);
          t.ok(answer.bytes.equals(bytes.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES)), `part ${at}`);
          t.same(shown(answer), [crc, `part-${at}/2`]);
          t.match(answer.header('cache-control'), /./);
        }
        t.equal((await get('?part_number=2')).status, 400);
      },
    },
  'HEAD returns the headers of GET and no body': {
    sentence: 'HEAD /auth/v1/file/{fileId} | | The headers alone.',
    async run(t, world) {
      const person = await world.person();
      const { fileId, bytes } = await uploadV1(world, person, smallFile());
      const head = await world.send('HEAD', `/auth/v1/file/${fileId}`, { headers: person.auth });
      t.same([head.status, head.text, head.header('content-length')], [200, '', String(bytes.length)]);
    },
  },
});

const V1_RULES = checksOf('4.6', {
  'a first chunk that is one byte shorter or longer is refused': {
    sentence: 'Every chunk has 256 KB; the last one may be shorter.',
    async run(t, world) {
      const { auth } = await world.person();
      const bytes = smallFile(CHUNK_BYTES + 10);
      expectOk('init', await initUpload(world, auth, bytes));
      for (const length of [CHUNK_BYTES - 1, CHUNK_BYTES + 1])
        t.equal(
          (await uploadPart(world, auth, bytes, 0, {}, bytes.subarray(0, length))).at('error.code'),
          1307,
        );
    },
  },
  'a member uploads to the chat, another user is refused': {
    sentence: 'A ChatId above 0 names a conversation, of which the caller must be a member.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const chatId = await newChat(world, auth);
      const { fileId } = await uploadV1(world, person, smallFile(), { ChatId: chatId });
      t.match(fileId, /^\d+$/);
      const other = await world.person();
      t.equal((await initUpload(world, other.auth, smallFile(), { ChatId: chatId })).status, 403);
    },
  },
  'with ChatId 0, -5 or none, the stored file is readable by its owner only': {
    sentence:
      "A ChatId of 0 or below, or none, is a file without conversation (an avatar, the logo of an application). It goes to the chat for the user's personal storage, which is created when needed.",
    async run(t, world) {
      const [person, other] = [await world.person(), await world.person()];
      for (const ChatId of PERSONAL) {
        const { fileId, bytes } = await uploadV1(world, person, smallFile(), { ChatId });
        t.ok((await world.get(`/auth/v1/file/${fileId}`, person.auth)).bytes.equals(bytes), String(ChatId));
        t.equal((await world.get(`/auth/v1/file/${fileId}`, other.auth)).status, 404);
      }
    },
  },
  'without a session it is 401; a user who joins the chat reads the file, other users do not': {
    sentence: "A download needs a session in every case, and access by the chat's metadata of the file.",
    async run(t, world) {
      const { auth, person } = await world.agent();
      const other = await world.person();
      const chatId = await newChat(world, auth);
      const { fileId, bytes } = await uploadV1(world, person, smallFile(), { ChatId: chatId });
      const path = `/auth/v1/file/${fileId}`;
      t.equal((await world.get(path)).status, 401);
      t.equal((await world.get(path, other.auth)).status, 404);
      await world.toolJson(auth, 'chat_add_member', { chatId, userId: other.userId });
      let given = await world.get(path, other.auth);
      // Answers of the chat module on a file are cached for two seconds.
      while (given.status === 404) given = await world.get(path, other.auth);
      t.ok(given.bytes.equals(bytes));
    },
  },
});

const V2 = checksOf('4.7', {
  'one text of id, colon and code is returned; no session is 401, an invalid name 1309': {
    sentence:
      'POST /auth/v2/file/create_draft | Query fileName, fileSize, chatId, message, linkedMessageId, crc32 (optional string, kept with the pending message) | { result: "<fileId>:<fileCode>" }',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const chatId = await newChat(world, auth);
      const bytes = smallFile();
      const fields = { message: 'streamed', crc32: crcOf(bytes), chatId };
      const { fileId } = await uploadV2(world, person, bytes, fields);
      const list = await world.toolJson(auth, 'chat_messages', { chatId });
      t.match(JSON.stringify(list), new RegExp(`"${fileId}"`));
      t.match(JSON.stringify(list), /streamed/);
      const draft = await createDraft(world, person.auth, { fileName: 'a.bin', fileSize: 3, chatId: 0 });
      t.match(draft.at('result'), /^\d+:[\w-]+$/);
      t.equal((await createDraft(world, {}, { fileName: 'a.bin', fileSize: 3 })).status, 401);
      t.equal(
        (await createDraft(world, person.auth, { fileName: 'a/b', fileSize: 3 })).at('error.code'),
        1309,
      );
    },
  },
  'a whole body and a body with Range are 200 without a body; a draft of another user is 1305': {
    sentence:
      'POST /auth/v2/file/stream_upload/{fileId} | The raw body, application/octet-stream; Range is optional | 200 without a body',
    async run(t, world) {
      const [person, other] = [await world.person(), await world.person()];
      const bytes = smallFile();
      const query = { fileName: 'a.bin', fileSize: bytes.length, chatId: 0 };
      const whole = draftOf(await createDraft(world, person.auth, query));
      t.equal((await streamUpload(world, other.auth, whole.fileId, bytes)).at('error.code'), 1305);
      const done = await streamUpload(world, person.auth, whole.fileId, bytes);
      t.same([done.status, done.text], [200, '']);
      const ranged = draftOf(await createDraft(world, person.auth, query));
      const Range = `bytes=0-${bytes.length - 1}`;
      const piece = await streamUpload(world, person.auth, ranged.fileId, bytes, { Range });
      t.same([piece.status, piece.text], [200, '']);
      t.ok((await world.get(`/auth/v2/file/${ranged.fileCode}`)).bytes.equals(bytes));
    },
  },
  'a range is 206, a matching ETag 304, another ETag 412; HEAD returns headers only': {
    sentence:
      'GET or HEAD /auth/v2/file/{id_or_code} | Range, If-None-Match, If-Match, all optional | The bytes; 206 Partial Content, Accept-Ranges: bytes and ETag are supported',
    async run(t, world) {
      const { fileCode, bytes } = await uploadV2(world, await world.person(), smallFile());
      const path = `/auth/v2/file/${fileCode}`;
      const whole = expectOk('get', await world.get(path));
      const tag = whole.header('etag');
      t.match(tag, /^"[^"]+"$/);
      t.equal(whole.header('accept-ranges'), 'bytes');
      const part = await world.get(path, { Range: 'bytes=10-19' });
      t.same([part.status, part.header('content-range')], [206, `bytes 10-19/${bytes.length}`]);
      t.ok(part.bytes.equals(bytes.subarray(10, 20)));
      t.equal((await world.get(path, { Range: 'bytes=5000-' })).status, 416);
      t.equal((await world.get(path, { 'If-None-Match': tag })).status, 304);
      t.equal((await world.get(path, { 'If-Match': '"other"' })).status, 412);
      t.equal((await world.get(path, { 'If-Match': tag })).status, 200);
      const head = await world.send('HEAD', path);
      t.same([head.status, head.text, head.header('etag')], [200, '', tag]);
    },
  },
});

const V2_RULES = checksOf('4.7', {
  'with chatId 0, -5 or none, the stored file is readable by its owner only': {
    sentence: 'With a chatId of 0 or below, create_draft uses personal storage as v1 does.',
    async run(t, world) {
      const [person, other] = [await world.person(), await world.person()];
      for (const chatId of PERSONAL) {
        const bytes = smallFile();
        const query = {
          fileName: 'a.bin',
          fileSize: bytes.length,
          ...(chatId === undefined ? {} : { chatId }),
        };
        const { fileId } = draftOf(await createDraft(world, person.auth, query));
        expectOk('stream', await streamUpload(world, person.auth, fileId, bytes));
        t.ok((await world.get(`/auth/v2/file/${fileId}`, person.auth)).bytes.equals(bytes), String(chatId));
        t.equal((await world.get(`/auth/v2/file/${fileId}`, other.auth)).status, 404);
      }
    },
  },
  'with a session code and id are accepted, without one only the code; with the setting at 1 also the id': {
    sentence:
      'id_or_code is a file code, which always works, or the id of a file as a number. An id always works for users who are authenticated; for anonymous users it works if FileDownloadByIdEnabled is true.',
    also: [
      [
        '8.3',
        `${fileSetting('FileDownloadByIdEnabled')} | If set, anonymous v2 downloads by id are allowed.`,
      ],
    ],
    async run(t, world) {
      const person = await world.person();
      const { fileId, fileCode, bytes } = await uploadV2(world, person, smallFile());
      const [byId, byCode] = [`/auth/v2/file/${fileId}`, `/auth/v2/file/${fileCode}`];
      for (const path of [byId, byCode])
        t.ok((await world.get(path, person.auth)).bytes.equals(bytes), 'with a session');
      t.ok((await world.get(byCode)).bytes.equals(bytes), 'anonymous, by code');
      t.equal((await world.get(byId)).status, 401, 'anonymous, by id');
      await world.setting('FileDownloadByIdEnabled', 1);
      t.ok((await world.get(byId)).bytes.equals(bytes), 'anonymous, by id, with the setting');
      await world.setting('FileDownloadByIdEnabled', 0);
    },
  },
  'with the setting a code is 401 without a session, and still valid with one': {
    sentence:
      'A download by code needs no session by default. With FileDownloadAuthRequired each v2 download needs one.',
    also: [
      ['8.3', `${fileSetting('FileDownloadAuthRequired')} | If set, no v2 download works without a session.`],
    ],
    async run(t, world) {
      const person = await world.person();
      const { fileCode } = await uploadV2(world, person, smallFile());
      const path = `/auth/v2/file/${fileCode}`;
      t.equal((await world.get(path)).status, 200);
      await world.setting('FileDownloadAuthRequired', 1);
      t.same((await world.get(path)).refusal, [401, 1101]);
      t.equal((await world.get(path, person.auth)).status, 200);
      await world.setting('FileDownloadAuthRequired', 0);
    },
  },
  'an expired bearer is ignored by a download by code; a download by id is 401': {
    sentence: 'A download by code needs no session by default.',
    async run(t, world) {
      const person = await world.mcpPerson();
      const { auth } = await world.agent('McpVerified', person);
      const { fileId, fileCode, bytes } = await uploadV2(world, person, smallFile());
      t.ok((await world.get(`/auth/v2/file/${fileId}`, auth)).bytes.equals(bytes));
      const later = await world.agent('McpVerified', person);
      await world.toolJson(later.auth, 'close_sessions', { others: true });
      t.ok((await world.get(`/auth/v2/file/${fileCode}`, auth)).bytes.equals(bytes));
      t.equal((await world.get(`/auth/v2/file/${fileId}`, auth)).status, 401);
    },
  },
  'a member reads by id, another user gets 404': {
    sentence: 'For an id, the chat module checks whether the authenticated user may read the file.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const chatId = await newChat(world, auth);
      const { fileId } = await uploadV2(world, person, smallFile(), { chatId });
      t.equal((await world.get(`/auth/v2/file/${fileId}`, auth)).status, 200);
      const other = await world.person();
      t.equal((await world.get(`/auth/v2/file/${fileId}`, other.auth)).status, 404);
    },
  },
  'with a cap of 2,000 bytes a body of 2,001 is 413, one of 2,000 is accepted': {
    sentence: 'A streamed body larger than FileMaxSizeBytes is answered with 413.',
    async run(t, world) {
      const { auth } = await world.person();
      await world.setting('FileMaxSizeBytes', 2_000);
      for (const [length, status] of [
        [2_001, 413],
        [2_000, 200],
      ] as const) {
        const draft = draftOf(await createDraft(world, auth, { fileName: 'a.bin', chatId: 0 }));
        t.equal((await streamUpload(world, auth, draft.fileId, smallFile(length))).status, status);
      }
      await world.setting('FileMaxSizeBytes', 20_971_520);
    },
  },
});

export const CHECKS: readonly Check[] = [...V1, ...V1_RULES, ...V2, ...V2_RULES];
