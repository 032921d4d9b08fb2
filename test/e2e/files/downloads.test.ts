/**
 * Downloads of the program with the sandbox: access rules and revocation, agents and users, local storage and storage
 * servers. Ranges are tested in test/io/routes/downloads.test.ts.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { newKey, type Person, request, signUp } from '../../../kit/agent.ts';
import { launchFor, NO_FILE_LIMITS, type RunningGateway } from '../../../kit/launch.ts';
import { MemoryStorageServer } from '../../../kit/storage/memory-server.ts';
import { initUpload, type PartAnswer, uploadAll } from '../../../kit/upload-client.ts';

t.setTimeout(120_000);

/** Answers of the chat module are cached for two seconds; the rest allows for a slow machine. Milliseconds. */
const REVOKED_MS_MAX = 6_000;

const admin = newKey();
const gateway = await launchFor(t, {
  args: ['--sandbox'],
  configuration: { Settings: NO_FILE_LIMITS, Admin: { publicKeys: [admin.publicKey] } },
});

async function get(path: string, headers: Record<string, string> = {}, from: RunningGateway = gateway) {
  const response = await fetch(`${from.url}${path}`, { headers });
  const bytes = Buffer.from(await response.arrayBuffer());
  const code = response.status < 400 ? undefined : JSON.parse(bytes.toString()).error.code;
  return { status: response.status, headers: response.headers, bytes, refusal: [response.status, code] };
}

async function chat(userId: string, path: string, body: object): Promise<Record<string, unknown>> {
  const headers = { 'X-Crm': userId };
  const answer = await request(`${gateway.sandbox}/chat/v1/${path}`, { headers, body });
  return answer.json['result'] as unknown as Record<string, unknown>;
}

async function upload({ cookie }: Person, bytes: Buffer, fields: object = {}, url = gateway.url) {
  const { fileId, fileCode }: PartAnswer = await uploadAll({ url, cookie }, bytes, { ...fields });
  return { byId: `/auth/v2/file/${fileId}`, byCode: `/auth/v2/file/${fileCode}`, fileId: String(fileId) };
}

const codeOf = ({ json }: Awaited<ReturnType<typeof initUpload>>) => Number(json['error']?.['code'] ?? 0);

/** Repeats a download until it is refused; returns the time taken and the refusal. */
async function untilRefused(path: string, headers: Record<string, string>) {
  const startMs = performance.now();
  for (;;) {
    const { status, refusal } = await get(path, headers);
    const tookMs = performance.now() - startMs;
    if (status !== 200 || tookMs > REVOKED_MS_MAX) return { tookMs, refusal };
  }
}

// covers R66 R67 S104
t.test('chat members fetch a file; other users and former members are refused', async (t) => {
  const [owner, member, outsider] = [
    await signUp(gateway.url),
    await signUp(gateway.url),
    await signUp(gateway.url),
  ];
  await chat(member.userId, 'messages/send', { chatId: '1', text: 'here' });
  const { id: chatId } = await chat(owner.userId, 'chats/create', {
    name: 'Files',
    memberIds: [member.userId],
  });
  const bytes = randomBytes(700_000);
  const file = await upload(owner, bytes, { ChatId: chatId });
  for (const { cookie } of [owner, member]) {
    for (const path of [file.byId, file.byCode, `/auth/v1/file/${file.fileId}`]) {
      const given = await get(path, { Cookie: cookie });
      t.ok(given.status === 200 && given.bytes.equals(bytes), path);
    }
  }
  t.same((await get(file.byId, { Cookie: outsider.cookie })).refusal, [404, 1311]);
  t.same((await get(`/auth/v1/file/${file.fileId}`, { Cookie: outsider.cookie })).refusal, [404, 1311]);
  t.same((await get(file.byId)).refusal, [401, 1101]);
  t.ok((await get(file.byCode)).bytes.equals(bytes), 'the code is valid for every caller');
  await chat(member.userId, 'chats/leave', { chatId });
  const left = await untilRefused(file.byId, { Cookie: member.cookie });
  t.same(left.refusal, [404, 1311], `${Math.round(left.tookMs)} ms after leaving`);
  t.equal((await get(file.byId, { Cookie: owner.cookie })).status, 200);
  await chat(owner.userId, 'messages/hard_delete', { messageId: file.fileId });
  t.same((await untilRefused(file.byCode, {})).refusal, [404, 1311], 'deleted');
  t.same((await untilRefused(file.byId, { Cookie: owner.cookie })).refusal, [404, 1311]);
});

// covers R71
t.test('digests: a SHA-256 that an upload was checked by is sent with its downloads', async (t) => {
  const { cookie } = await signUp(gateway.url);
  const bytes = randomBytes(50_000);
  const sha256 = `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`;
  const half = bytes.length / 2;
  const pieces: Record<string, [headers: Record<string, string>, body: Buffer][]> = {
    'Repr-Digest': [[{ 'Repr-Digest': sha256 }, bytes]],
    'Content-Digest': [[{ 'Content-Digest': sha256 }, bytes]],
    'in two pieces': [
      [{ Range: `bytes=0-${half - 1}` }, bytes.subarray(0, half)],
      [{ Range: `bytes=${half}-`, 'Repr-Digest': sha256 }, bytes.subarray(half)],
    ],
    none: [[{}, bytes]],
  };
  for (const [name, requests] of Object.entries(pieces)) {
    const path = `/auth/v2/file/create_draft?fileName=a.bin&fileSize=${bytes.length}`;
    const draft = await request(`${gateway.url}${path}`, { method: 'POST', headers: { Cookie: cookie } });
    const [fileId, code] = String(draft.json['result']).split(':');
    for (const [headers, body] of requests) {
      const url = `${gateway.url}/auth/v2/file/stream_upload/${fileId}`;
      const all = { Cookie: cookie, ...headers };
      const answer = await fetch(url, { method: 'POST', headers: all, body: Uint8Array.from(body) });
      t.equal(answer.status, 200, `${name}: ${await answer.text()}`);
    }
    const { headers } = await get(`/auth/v2/file/${code}`, { 'Want-Repr-Digest': 'sha-256=1' });
    t.equal(headers.get('repr-digest'), name === 'none' ? null : sha256, name);
  }
});

t.test('a blocked user is refused every download', async (t) => {
  const person = await signUp(gateway.url);
  const file = await upload(person, randomBytes(1_000));
  t.equal((await get(file.byId, { Cookie: person.cookie })).status, 200);
  const { cookie } = await signUp(gateway.url, admin);
  const unfinished = randomBytes(600_000);
  t.equal((await initUpload({ url: gateway.url, cookie: person.cookie }, unfinished)).status, 200);
  t.equal(await initUpload({ url: gateway.url, cookie }, unfinished).then(codeOf), 1304);
  const blocked = await request(`${gateway.url}/ProxyAdmin/api/users/block`, {
    headers: { Cookie: cookie },
    body: { userId: person.userId, blocked: true },
  });
  t.equal(blocked.status, 200, blocked.text);
  t.same((await get(file.byId, { Cookie: person.cookie })).refusal, [401, 1101]);
  t.same((await get(`/auth/v1/file/${file.fileId}`, { Cookie: person.cookie })).refusal, [401, 1101]);
  // The slot and the checksum are freed by an actor message after the answer; an abandoned upload would keep them 600 s.
  const startMs = performance.now();
  let code = 0;
  do code = await initUpload({ url: gateway.url, cookie }, unfinished).then(codeOf);
  while (code === 1304 && performance.now() - startMs < REVOKED_MS_MAX);
  t.equal(code, 0, 'the open upload of the blocked user is released');
});

async function removeFiles(from: RunningGateway, files: readonly object[]) {
  const key = readFileSync(join(from.dataPath, 'sandbox/module-key'), 'utf8').trim();
  const headers = { 'X-Module-Key': key };
  const answer = await request(`${from.internal}/internal/v1/files/remove`, { headers, body: { files } });
  return [answer.status, answer.json['result'] ?? answer.json['error']?.['code']];
}

// covers R6
t.test('removed files are 404 at once, and open uploads continue', async (t) => {
  const [person, other] = [await signUp(gateway.url), await signUp(gateway.url)];
  const bytes = randomBytes(300_000);
  const file = await upload(person, bytes);
  t.equal((await get(file.byCode)).status, 200, 'known and downloadable');
  const draft = await fetch(`${gateway.url}/auth/v2/file/create_draft?fileName=a.bin&fileSize=300000`, {
    method: 'POST',
    headers: { Cookie: person.cookie },
  });
  const { result } = (await draft.json()) as { result: string };
  const draftId = result.slice(0, result.indexOf(':'));
  const kept = await fetch(`${gateway.url}/auth/v2/file/stream_upload/${draftId}`, {
    method: 'POST',
    headers: { Cookie: person.cookie, Range: 'bytes=0-99999' },
    body: bytes.subarray(0, 100_000),
  });
  t.equal(kept.status, 200, await kept.text());
  const ownerId = person.userId;
  const asked = [file.fileId, file.fileId, draftId, '5'].map((fileId) => ({ fileId, ownerId }));
  t.same(await removeFiles(gateway, [{ fileId: file.fileId, ownerId: other.userId }]), [200, { removed: 0 }]);
  t.same(await removeFiles(gateway, asked), [200, { removed: 1 }]);
  t.same((await get(file.byCode)).refusal, [404, 1311]);
  t.same(await removeFiles(gateway, asked), [200, { removed: 0 }], 'again is a success');
  const rest = await fetch(`${gateway.url}/auth/v2/file/stream_upload/${draftId}`, {
    method: 'POST',
    headers: { Cookie: person.cookie, Range: 'bytes=100000-299999' },
    body: bytes.subarray(100_000),
  });
  t.equal(rest.status, 200, await rest.text());
  t.ok((await get(`/auth/v2/file/${draftId}`, { Cookie: person.cookie })).bytes.equals(bytes));
  t.same(await removeFiles(gateway, asked), [200, { removed: 1 }], 'a complete file can be removed');
});

t.test('storage server: its files are served whole, in ranges, and to HEAD', async (t) => {
  const server = await MemoryStorageServer.start(t);
  const far = await launchFor(t, {
    args: ['--sandbox'],
    configuration: { Settings: NO_FILE_LIMITS, FileServers: { 0: { Host: server.url } } },
  });
  const person = await signUp(far.url);
  const bytes = randomBytes(1_300_000);
  const file = await upload(person, bytes, {}, far.url);
  t.ok((await get(file.byCode, {}, far)).bytes.equals(bytes));
  const doomed = await upload(person, randomBytes(1_000), {}, far.url);
  const files = [{ fileId: doomed.fileId, ownerId: person.userId }];
  t.same(await removeFiles(far, files), [200, { removed: 1 }]);
  t.same([...server.files.keys()], [`/${person.userId}/${file.fileId}`]);
  const part = await get(file.byCode, { Range: 'bytes=-5' }, far);
  t.same([part.status, part.bytes], [206, bytes.subarray(-5)]);
  const many = await get(file.byCode, { Range: 'bytes=0-9,600000-1299999' }, far);
  t.equal(many.bytes.length, Number(many.headers.get('content-length')));
  t.ok(many.bytes.includes(bytes.subarray(600_000)));
  const chunk = await get(`/auth/v1/file/${file.fileId}?part_number=4`, { Cookie: person.cookie }, far);
  t.ok(chunk.bytes.equals(bytes.subarray(4 * 256 * 1024)));
  const head = await fetch(`${far.url}${file.byCode}`, { method: 'HEAD' });
  t.equal(head.headers.get('content-length'), '1300000');
});
