/** Contract, section 3: states and transitions. */
import { connect } from 'node:net';
import { type Check, checksOf } from '../check.ts';
import { read } from '../client.ts';
import { expectOk, type Person } from '../unshown.ts';
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
} from '../uploads.ts';
import type { World } from '../world.ts';

const keysOf = async (world: World, { auth }: Person) =>
  (await world.get('/auth/v1/keys/user_keys', auth)).listAt('result');

const KEYS = checksOf('3', {
  'a removed key is neither listed nor valid for login, an admin still finds its record; a foreign key is not removed':
    {
      sentence:
        'User key | active | remove_key | the caller owns the key | deleted (soft: flag Deleted) | The record stays.',
      async run(t, world) {
        const [person, other] = [await world.mcpPerson(), await world.person()];
        const foreign = await world.post('/auth/v1/keys/remove_key', other.auth, { keyId: person.keyId });
        t.equal(foreign.status, 404);
        t.equal((await keysOf(world, person)).length, 1, 'refused for another user');
        expectOk(
          'remove',
          await world.post('/auth/v1/keys/remove_key', person.auth, { keyId: person.keyId }),
        );
        const login = await world.mcpLogin({ 'X-PublicKey': person.key.publicKey });
        t.match(login, { status: 401, json: { error: { message: 'Session not found' } } });
        const { auth } = await world.admin();
        const record = await world.get(
          `/ProxyAdmin/api/user_keys?userId=${person.userId}&deleted=true`,
          auth,
        );
        t.match(record.at('result'), [{ id: person.keyId, deleted: true }]);
        const again = await world.post('/auth/v1/keys/remove_key', other.auth, { keyId: person.keyId });
        t.equal(again.status, 404);
      },
    },
  'supplied flags are set, omitted flags are kept, a foreign key is 404': {
    sentence:
      'User key | active | update_key | the caller owns the key | active | mcpAccess and cardDavAccess get the given values.',
    also: [
      [
        '1',
        'Public keys of each user (Ed25519 software keys, FIDO2 hardware keys), with flags that permit MCP and contact synchronization.',
      ],
    ],
    async run(t, world) {
      const [person, other] = [await world.person(), await world.person()];
      t.match(await keysOf(world, person), [{ mcpAccess: false, cardDavAccess: false }]);
      expectOk('set', await world.updateKey(person, { mcpAccess: true, cardDavAccess: true }));
      expectOk('clear', await world.updateKey(person, { mcpAccess: false }));
      t.match(await keysOf(world, person), [{ mcpAccess: false, cardDavAccess: true }]);
      const foreign = { keyId: person.keyId, mcpAccess: true };
      t.equal((await world.post('/auth/v1/keys/update_key', other.auth, foreign)).status, 404);
      t.match(await keysOf(world, person), [{ mcpAccess: false }]);
    },
  },
  'a McpBasic session stays McpBasic after a McpVerified login of the same key': {
    sentence:
      'McpBasic, McpVerified and McpApp are fixed login types; a session does not change from one to another.',
    async run(t, world) {
      const person = await world.mcpPerson();
      const basic = await world.agent('McpBasic', person);
      const before = await world.toolNames(basic.auth);
      await world.agent('McpVerified', person);
      t.same(await world.toolNames(basic.auth), before);
    },
  },
});

const V1 = checksOf('3', {
  'the last missing chunk returns id and code; the message is in the chat, and the next upload can open': {
    sentence:
      'v1 upload | open | upload_part, last missing chunk | the CRC-32 of the file is right | complete | Storage has the bytes. The pending message is completed. The answer has file id and code. Buffer space is freed.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const chatId = String(read(await world.toolJson(auth, 'chat_create', { name: 'Parts' }), 'result.id'));
      const bytes = smallFile(CHUNK_BYTES + 100);
      expectOk('init', await initUpload(world, person.auth, bytes, { ChatId: chatId }));
      await uploadPart(world, person.auth, bytes, 1);
      const last = expectOk('last', await uploadPart(world, person.auth, bytes, 0));
      const fileId = last.textAt('result.fileId');
      t.match(last.textAt('result.fileCode'), /./);
      const list = read(
        await world.toolJson(auth, 'chat_messages', { chatId }),
        'result.messages',
      ) as unknown[];
      t.ok(list.some((message) => read(message, 'id') === fileId));
      t.ok((await world.get(`/auth/v1/file/${fileId}`, person.auth)).bytes.equals(bytes));
      t.equal((await uploadPart(world, person.auth, bytes, 1)).at('error.code'), 1305, 'no longer active');
      const next = smallFile();
      expectOk('next', await initUpload(world, person.auth, next));
      expectOk('cancel', await cancelUpload(world, person.auth, crcOf(next)));
    },
  },
});

/** Sends a part of a body and closes the connection. */
function breakOff(world: World, { auth }: Person, fileId: string): Promise<void> {
  const { port } = new URL(world.gateway.url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('close', () => resolve());
    socket.write(
      `POST /auth/v2/file/stream_upload/${fileId} HTTP/1.1\r\nHost: localhost\r\nCookie: ${auth['Cookie']}\r\n` +
        'Content-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nabc',
      () => socket.destroy(),
    );
  });
}

const V2 = checksOf('3', {
  'a draft cannot be fetched; after the stream the file and its message exist': {
    sentence:
      'v2 draft | pending | stream_upload is done | the body is not above the size cap | complete | Answer 200 without a body. The message is completed.',
    async run(t, world) {
      const { auth, person } = await world.agent();
      const chatId = String(read(await world.toolJson(auth, 'chat_create', { name: 'Drafts' }), 'result.id'));
      const bytes = smallFile();
      const fields = { fileName: 'a.bin', fileSize: bytes.length, chatId };
      const { fileId, fileCode } = draftOf(await createDraft(world, person.auth, fields));
      t.equal((await world.get(`/auth/v2/file/${fileCode}`)).status, 404);
      const done = await streamUpload(world, person.auth, fileId, bytes);
      t.same([done.status, done.text], [200, '']);
      t.ok((await world.get(`/auth/v2/file/${fileCode}`)).bytes.equals(bytes));
      const list = read(
        await world.toolJson(auth, 'chat_messages', { chatId }),
        'result.messages',
      ) as unknown[];
      t.ok(list.some((message) => read(message, 'id') === fileId));
    },
  },
  'after a broken or a refused stream the draft is 1305, and its code opens no file': {
    sentence:
      'v2 draft | pending | stream_upload fails, or the client goes | | removed (as far as possible) | Stored bytes and pending message are removed.',
    async run(t, world) {
      const person = await world.person();
      const query = { fileName: 'a.bin', fileSize: 1_000, chatId: 0 };
      const broken = draftOf(await createDraft(world, person.auth, query));
      await breakOff(world, person, broken.fileId);
      const refused = draftOf(await createDraft(world, person.auth, query));
      t.ok((await streamUpload(world, person.auth, refused.fileId, smallFile(1_001))).status >= 400);
      for (const { fileId, fileCode } of [refused, broken]) {
        let again = await streamUpload(world, person.auth, fileId, smallFile(1_001));
        // The gateway detects the end of a connection shortly after its client.
        while (again.status === 409) again = await streamUpload(world, person.auth, fileId, smallFile(1_001));
        t.equal((await streamUpload(world, person.auth, fileId, smallFile(1_000))).at('error.code'), 1305);
        t.equal((await world.get(`/auth/v2/file/${fileCode}`)).status, 404);
      }
    },
  },
});

export const CHECKS: readonly Check[] = [...KEYS, ...V1, ...V2];
