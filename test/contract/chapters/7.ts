/** Contract, section 7: errors. */
import { type Check, checksOf } from '../check.ts';
import type { Answer, Headers } from '../client.ts';
import { expectOk, newKey, type Person, sandboxFault } from '../unshown.ts';
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
import { verifiedHeaders, type World } from '../world.ts';
import { paymentCode } from './2-tools.ts';

const ENVELOPE = checksOf('7.1', {
  '400, 401, 404, 405, 413 and 415 have the same form on every kind of route': {
    sentence: 'A REST error is { error: { code, message } }.',
    async run(t, world) {
      const person = await world.person();
      const big = Buffer.alloc(300_000, 32);
      const type = { 'content-type': 'text/plain' };
      const answers: [number, Answer][] = [
        [400, await world.post('/auth/v1/login_phone', {}, '{')],
        [401, await world.get('/wallet/v1/balance/get')],
        [404, await world.get('/auth/v1/nothing')],
        [404, await world.get('/auth/v1/file/1', person.auth)],
        [405, await world.get('/auth/v1/mcp_login')],
        [413, await world.send('POST', '/auth/v1/login_phone', { bytes: big, headers: JSON_TYPE })],
        [415, await world.send('POST', '/auth/v1/login_phone', { bytes: Buffer.from('{}'), headers: type })],
      ];
      for (const [status, answer] of answers) {
        t.equal(answer.status, status, answer.text);
        t.match(answer.json, { error: { code: Number, message: /./ } });
        t.notOk(answer.text.includes('"result"'));
      }
    },
  },
  'an envelope and a bare 500 of the module are both a result with isError': {
    sentence: "An error of a tool's backend is a JSON-RPC result with isError: true and no JSON-RPC error.",
    also: [
      ['4.1', 'An error envelope of the backend sets isError, and the answer remains a JSON-RPC result.'],
    ],
    async run(t, world) {
      const { auth } = await world.agent();
      const bodies = ['{"error":{"code":9001,"message":"No"}}', 'out of order'];
      for (const body of bodies) {
        world.core.answer = () => ({ status: 500, body });
        const answer = await world.tool(auth, 'custom_get');
        t.equal(answer.at('error'), undefined, answer.text);
        t.equal(answer.at('result.isError'), true);
        t.match(answer.textAt('result.content.0.text'), body);
      }
      world.core.answer = () => ({});
    },
  },
});

const JSON_TYPE = { 'content-type': 'application/json' };

/** A row of 7.2: status, message, and the logins that get them. */
function refusedLogin(
  sentence: string,
  shows: string,
  logins: (world: World) => Promise<readonly Headers[]>,
  also: Check['also'] = [],
): Check {
  const [status, message] = sentence.split(' | ');
  return {
    section: '7.2',
    sentence,
    shows,
    also,
    async run(t, world) {
      for (const headers of await logins(world)) {
        const answer = await world.mcpLogin(headers);
        t.same([String(answer.status), answer.at('error.message')], [status, message]);
      }
    },
  };
}

const LOGIN: readonly Check[] = [
  refusedLogin(
    '400 | Invalid input format | Key, signature, timestamp or application id cannot be read',
    'each header alone, malformed',
    async (world) => {
      const good = verifiedHeaders((await world.mcpPerson()).key);
      const names = ['X-PublicKey', 'X-Signature', 'X-Timestamp', 'X-App-Id'];
      return names.map((name) => ({ ...good, [name]: '=' }));
    },
    [['5.1', 'A key, signature, timestamp or application id that cannot be read is answered with 400.']],
  ),
  refusedLogin(
    '401 | Session not found | No eligible user key equals the public key',
    'an unknown key, and a removed key',
    async (world) => {
      const { key, auth, keyId } = await world.mcpPerson();
      expectOk('remove', await world.post('/auth/v1/keys/remove_key', auth, { keyId }));
      return [verifiedHeaders(newKey()), { 'X-PublicKey': newKey().publicKey }, verifiedHeaders(key)];
    },
    [['5.1', 'An account has the public key among its user keys.']],
  ),
  refusedLogin(
    '401 | Access denied | The key has no McpAccess, the user is blocked, the application is not approved, or the key is not authorized for it',
    'the four conditions, one by one',
    async (world) => {
      const [owner, other, blocked] = await Promise.all([
        world.mcpPerson(),
        world.mcpPerson(),
        world.mcpPerson(),
      ]);
      const { auth } = await world.admin();
      const block = { userId: blocked.userId, blocked: true };
      expectOk('block', await world.post('/ProxyAdmin/api/users/block', auth, block));
      const app = async (name: string) =>
        (await world.app(owner, { name, url: `https://${name}.example` })).textAt('result.id');
      const [closed, open] = [await app('closed'), await app('open')];
      await world.approve(open);
      const login = ({ key }: Person, id: string) => ({ 'X-PublicKey': key.publicKey, 'X-App-Id': id });
      return [
        verifiedHeaders((await world.person()).key),
        verifiedHeaders(blocked.key),
        login(owner, closed),
        login(other, open),
      ];
    },
  ),
  ...checksOf('7.2', {}),
];

const RPC = checksOf('7.3', {
  'an unknown method, with a session and without': {
    sentence: '-32601 | The method does not exist',
    also: [['4.1', 'A failure of JSON-RPC is in the field error; section 7 lists the codes.']],
    async run(t, world) {
      const { auth } = await world.agent();
      for (const headers of [{}, auth]) {
        const answer = await world.rpc(headers, 'tools/nothing');
        t.same([answer.at('error.code'), answer.at('result')], [-32601, undefined]);
      }
    },
  },
  'the three conditions, one by one': {
    sentence:
      '-32602 | Invalid parameters: no tool name, a tool that does not exist, a code that is not valid',
    async run(t, world) {
      const { auth } = await world.agent();
      t.equal((await world.rpc(auth, 'tools/call', { arguments: {} })).at('error.code'), -32602);
      t.equal((await world.tool(auth, 'no_such_tool')).at('error.code'), -32602);
      const wrong = { 'X-MCP-Code': 'no-such-code' };
      t.equal((await world.tool(wrong, 'payment_order_info')).at('error.code'), -32602);
    },
  },
  'no session, an invalid one, and one of a denied type': {
    sentence: '-32001 | The session may not do this, or there is none',
    async run(t, world) {
      const basic = await world.agent('McpBasic');
      for (const headers of [{}, { Authorization: 'Bearer nothing' }, basic.auth])
        t.equal((await world.tool(headers, 'wallet_internal_transfer')).at('error.code'), -32001);
    },
  },
  'a URI without a resource': {
    sentence: '-32002 | No resource has this URI',
    async run(t, world) {
      const { auth } = await world.agent();
      for (const uri of ['contract://core/nothing', 'no uri'])
        t.equal((await world.rpc(auth, 'resources/read', { uri })).at('error.code'), -32002);
    },
  },
  'a module that breaks its connection, and a payments module that cannot look up a code': {
    sentence: '-32000 | The tool failed, or the module of the capability is not available',
    async run(t, world) {
      const { auth } = await world.agent();
      world.core.answer = () => ({ none: 'cut' });
      t.equal((await world.tool(auth, 'custom_post')).at('error.code'), -32000);
      world.core.answer = () => ({});
      const code = { 'X-MCP-Code': await paymentCode(world) };
      const sandbox = String(world.gateway.sandbox);
      await sandboxFault(sandbox, 'payments', 'error');
      t.equal((await world.rpc(code, 'tools/list')).at('error.code'), -32000);
      await sandboxFault(sandbox, 'payments', 'ok');
    },
  },
});

/** Maximum of open upload sessions of the server (2.7). */
const UPLOADS_MAX = 60;

/** Opens the maximum of uploads, each of another user, then one more; returns its answer. */
async function openSixtyOne(world: World): Promise<Answer> {
  const persons = await Promise.all(Array.from({ length: UPLOADS_MAX + 1 }, () => world.person()));
  const last = persons.pop();
  const files = persons.map((person) => ({ person, bytes: smallFile() }));
  const opened = await Promise.all(files.map(({ person, bytes }) => initUpload(world, person.auth, bytes)));
  for (const answer of opened) expectOk('init', answer);
  const answer = await initUpload(world, last?.auth ?? {}, smallFile());
  await Promise.all(files.map(({ person, bytes }) => cancelUpload(world, person.auth, crcOf(bytes))));
  return answer;
}

const tooMany = new WeakMap<World, Promise<Answer>>();

/** Performed once for all checks of a world. */
function oneUploadTooMany(world: World): Promise<Answer> {
  const known = tooMany.get(world) ?? openSixtyOne(world);
  tooMany.set(world, known);
  return known;
}

/** All sentences with this number. These checks run first: uploads left open by others would count. */
const SIXTY: readonly Check[] = (
  [
    ['2.7', 'the server 60.'],
    ['3', 'the server has fewer than 60,'],
    ['7.4', '1303 | TooManyDownloads | The server has 60 active v1 uploads'],
    ['8.3', 'At most 60 v1 uploads are active.'],
  ] as const
).map(([section, sentence]) => ({
  section,
  sentence,
  shows: 'with sixty open uploads of different users, the next one is 1303',
  async run(t, world) {
    t.equal((await oneUploadTooMany(world)).at('error.code'), 1303);
  },
}));

const CODES: readonly Check[] = [
  ...checksOf('7.4', {
    'a size of zero and one of 20 MB and one byte, for both transports; 20 MB are accepted': {
      sentence: '1301 | MaxFileSize | The file is empty or above the limit of 20 MB',
      also: [['3', 'the size is above zero and not above the cap,']],
      async run(t, world) {
        const { auth } = await world.person();
        for (const FileSize of [0, 20_971_521]) {
          const query = { fileName: 'a.bin', fileSize: FileSize, chatId: 0 };
          t.equal((await initUpload(world, auth, smallFile(), { FileSize })).at('error.code'), 1301);
          t.equal((await createDraft(world, auth, query)).at('error.code'), 1301);
        }
        const bytes = smallFile();
        t.equal((await initUpload(world, auth, bytes, { FileSize: 20_971_520 })).status, 200);
        await cancelUpload(world, auth, crcOf(bytes));
      },
    },
    'a second upload of the user is 1302, the same CRC32 of another user 1304': {
      sentence:
        '1302 | AlreadyDownload | The user has an active v1 upload … 1304 | CRC32AlreadyUsed | An active v1 upload has the declared CRC-32',
      also: [
        [
          '3',
          'v1 upload | (none) | init_upload | … the user has no active upload, … no active upload has this CRC-32 | open',
        ],
      ],
      async run(t, world) {
        const [one, other] = [await world.person(), await world.person()];
        const bytes = smallFile();
        expectOk('init', await initUpload(world, one.auth, bytes));
        t.equal((await initUpload(world, one.auth, smallFile())).at('error.code'), 1302);
        t.equal((await initUpload(world, other.auth, bytes)).at('error.code'), 1304);
        await cancelUpload(world, one.auth, crcOf(bytes));
        t.equal((await initUpload(world, other.auth, bytes)).status, 200, 'free again');
        await cancelUpload(world, other.auth, crcOf(bytes));
      },
    },
    'an unknown and a cancelled id; a chunk number past the end; a chunk one byte too long': {
      sentence:
        '1305 | InvalidID | No active upload has the id … 1306 | InvalidPart | The file has no chunk of this number … 1307 | WrongPart | The body is larger than the chunk should be',
      also: [['3', 'v1 upload | open | cancel_upload | | cancelled | Buffer space is freed.']],
      async run(t, world) {
        const { auth } = await world.person();
        const bytes = smallFile(CHUNK_BYTES + 9);
        t.equal((await uploadPart(world, auth, bytes, 0)).at('error.code'), 1305);
        expectOk('init', await initUpload(world, auth, bytes));
        for (const chunkNumber of [2, 4_000])
          t.equal((await uploadPart(world, auth, bytes, 0, { chunkNumber })).at('error.code'), 1306);
        const long = bytes.subarray(0, CHUNK_BYTES + 1);
        t.equal((await uploadPart(world, auth, bytes, 0, {}, long)).at('error.code'), 1307);
        t.equal((await uploadPart(world, auth, bytes, 1, {}, smallFile(10))).at('error.code'), 1307);
        await cancelUpload(world, auth, crcOf(bytes));
        t.equal((await uploadPart(world, auth, bytes, 0)).at('error.code'), 1305);
        expectOk('again', await initUpload(world, auth, bytes));
        await cancelUpload(world, auth, crcOf(bytes));
      },
    },
    'a chunk and a file whose CRC32 differs from the declared one': {
      sentence:
        '1308 | ChecksumError | The CRC-32 of the chunk differs (or that of the file: the call is refused too)',
      async run(t, world) {
        const { auth } = await world.person();
        const [bytes, declared] = [smallFile(), smallFile()];
        expectOk('init', await initUpload(world, auth, declared));
        const uploadId = crcOf(declared);
        const wrong = { uploadId, chunkCrc32: crcOf(declared) };
        t.equal((await uploadPart(world, auth, bytes, 0, wrong)).at('error.code'), 1308, 'chunk');
        t.equal((await uploadPart(world, auth, bytes, 0, { uploadId })).at('error.code'), 1308, 'file');
      },
    },
    'paths, control characters and an empty name, for both transports': {
      sentence: '1309 | InvalidFileName | The file name is not valid',
      also: [['3', 'the name is valid,']],
      async run(t, world) {
        const { auth } = await world.person();
        for (const FileName of ['a/b.txt', '..', 'a\u0000b', '']) {
          const query = { fileName: FileName, fileSize: 3, chatId: 0 };
          t.equal((await initUpload(world, auth, smallFile(), { FileName })).at('error.code'), 1309);
          t.equal((await createDraft(world, auth, query)).at('error.code'), 1309);
        }
      },
    },
    'with a chat module that fails, init_upload, create_draft and the last chunk are 1310': {
      sentence:
        '1310 | ChartApiFileError | The chat module could not create or complete the message of the file',
      async run(t, world) {
        const [one, other] = [await world.person(), await world.person()];
        const [bytes, sandbox] = [smallFile(), String(world.gateway.sandbox)];
        expectOk('init', await initUpload(world, one.auth, bytes));
        await sandboxFault(sandbox, 'chat', 'error');
        const query = { fileName: 'a.bin', fileSize: 3, chatId: 0 };
        t.equal((await initUpload(world, other.auth, smallFile())).at('error.code'), 1310);
        t.equal((await createDraft(world, other.auth, query)).at('error.code'), 1310);
        t.equal((await uploadPart(world, one.auth, bytes, 0)).at('error.code'), 1310);
        await sandboxFault(sandbox, 'chat', 'ok');
        t.equal((await initUpload(world, other.auth, smallFile())).status, 200);
      },
    },
  }),
  ...checksOf('4.6', {
    'without a personal chat an upload is 1310, and no upload stays open': {
      sentence: 'Where that is not possible, the answer is an error of the gateway or of files.',
      async run(t, world) {
        const { auth } = await world.person();
        const [bytes, sandbox] = [smallFile(), String(world.gateway.sandbox)];
        await sandboxFault(sandbox, 'chat', 'down');
        t.equal((await initUpload(world, auth, bytes)).at('error.code'), 1310);
        await sandboxFault(sandbox, 'chat', 'ok');
        t.equal((await initUpload(world, auth, bytes)).status, 200);
      },
    },
  }),
  ...checksOf('7.4', {
    'a body of more bytes than FileMaxSizeBytes is 413': {
      sentence: 'Besides these: 413 for a v2 body that is too large.',
      async run(t, world) {
        const { auth } = await world.person();
        await world.setting('FileMaxSizeBytes', 1_000);
        const { fileId } = draftOf(await createDraft(world, auth, { fileName: 'a.bin', chatId: 0 }));
        t.equal((await streamUpload(world, auth, fileId, smallFile(1_001))).status, 413);
        await world.setting('FileMaxSizeBytes', 20_971_520);
      },
    },
  }),
];

export const CHECKS: readonly Check[] = [...ENVELOPE, ...LOGIN, ...RPC, ...SIXTY, ...CODES];
