/** Open uploads of a removed account, v1 and v2: their messages are cancelled, their bytes, room and slots are free again. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { UPLOAD_SLOTS_ID, uploadSlots } from '../../../src/actors/files/v1/upload-slots.ts';
import { draft } from '../../../src/actors/files/v2/draft.ts';
import { slotIdOf } from '../../../src/actors/files/v2/draft-state.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { HOUR_MS } from '../../../src/domain/time.ts';
import { type Account, cookie, startAccounts } from '../../support/account.ts';
import { FakeChat, FakeDisk } from '../../support/files/draft-world.ts';

const TO = { chatId: null, message: null, linkedMessageId: null };
const BYTES = Buffer.from('first bytes');
const LAST_SLOT = 19;

const rowOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'done',
    (error: unknown) => (error instanceof GatewayError ? error.row : error),
  );

async function start(t: Test) {
  const [chat, disk] = [new FakeChat(), new FakeDisk()];
  const fixture = closeAfter(t, startAccounts({ files: { chatFiles: chat, files: disk } }));
  const { actors, post } = fixture;
  const openUpload = (userId: string, uploadId: number) =>
    actors.system.ask(uploadSlots, UPLOAD_SLOTS_ID, {
      type: 'grantUpload',
      userId,
      uploadId,
      name: 'v1.bin',
      sizeBytes: 1_000,
      ...TO,
    });
  const openDraft = async (ownerId: string, slot: number) => {
    const opened = await actors.system.ask(draft, slotIdOf(ownerId, slot), {
      type: 'openDraft',
      ownerId,
      name: 'v2.bin',
      sizeBytes: null,
      declaredCrc32: null,
      ...TO,
    });
    if (opened === null) throw new Error('the slot is taken');
    return opened.fileId;
  };
  const beginStream = async (ownerId: string, slot: number, fileId: string) => {
    const command = { type: 'beginStream', offsetBytes: 0, appends: false, keeps: true } as const;
    const begun = await actors.system.ask(draft, slotIdOf(ownerId, slot), { ...command, ownerId, fileId });
    if (!begun.begun) throw new Error('the stream did not begin');
    disk.write(fileId, 0, BYTES);
    return begun.stream;
  };
  const remove = async ({ sid }: Account) => {
    const { status } = await post('/auth/v1/account/remove', undefined, cookie(sid));
    await actors.settle();
    return status;
  };
  const uploaders = async () => {
    const slots = await actors.system.query(uploadSlots, UPLOAD_SLOTS_ID, { type: 'slots' });
    return slots.map(({ userId }) => userId);
  };
  const statesOf = (userId: string) =>
    [...chat.messages.values()].filter(({ file }) => file.userId === userId).map(({ state }) => state);
  return { ...fixture, chat, disk, openUpload, openDraft, beginStream, remove, uploaders, statesOf };
}

// covers R124
t.test('removal: an open v1 upload and all open drafts end, and those of others stay', async (t) => {
  const fixture = await start(t);
  const { actors, disk, openUpload, openDraft, signUp, statesOf } = fixture;
  const [ada, bob] = [await signUp(), await signUp()];
  await openUpload(ada.userId, 1);
  await openUpload(bob.userId, 2);
  await openDraft(ada.userId, 0);
  const receiving = await openDraft(ada.userId, 1);
  const stream = await fixture.beginStream(ada.userId, 1, receiving);
  await openDraft(ada.userId, LAST_SLOT);
  await openDraft(bob.userId, 0);
  t.same(statesOf(ada.userId), ['pending', 'pending', 'pending', 'pending']);
  t.equal(await fixture.remove(ada), 200);
  t.same(statesOf(ada.userId), ['cancelled', 'cancelled', 'cancelled', 'cancelled']);
  t.same(statesOf(bob.userId), ['pending', 'pending']);
  t.same(await fixture.uploaders(), [bob.userId], 'the slot of the v1 upload is free');
  const others = [...fixture.chat.messages.values()].filter(({ file }) => file.userId === bob.userId);
  const kept = new Set(others.map(({ fileId }) => fileId));
  t.same(
    [...disk.parts.keys()].filter((fileId) => !kept.has(fileId)),
    [],
    'its bytes are removed',
  );
  const at = slotIdOf(ada.userId, 1);
  const finish = {
    type: 'finishBody',
    fileId: receiving,
    stream,
    sizeBytes: BYTES.length,
    crc32: 1,
  } as const;
  t.equal(await rowOf(actors.system.ask(draft, at, finish)), 'InvalidID', 'the stream under way ends');
  t.equal(disk.files.size, 0);
  for (const slot of [0, 1, LAST_SLOT])
    t.ok(
      await actors.system.query(draft, slotIdOf(ada.userId, slot), { type: 'isFree', forgets: false }),
      `slot ${slot}`,
    );
});

t.test('removal: messages are cancelled once the chat module is back, also over a restart', async (t) => {
  const { actors, chat, openUpload, openDraft, signUp, remove, statesOf } = await start(t);
  const ada = await signUp();
  await openUpload(ada.userId, 1);
  await openDraft(ada.userId, 0);
  chat.mode = 'down';
  t.equal(await remove(ada), 200, 'the removal does not wait for it');
  t.same(statesOf(ada.userId), ['pending', 'pending']);
  await actors.restart();
  chat.mode = 'ok';
  await actors.advance(HOUR_MS);
  t.same(statesOf(ada.userId), ['cancelled', 'cancelled']);
});
