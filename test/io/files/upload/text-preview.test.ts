/** Text previews for the chat module. */
import t, { type Test } from 'tap';
import { GatewayError } from '../../../../src/domain/errors.ts';
import { textPreview } from '../../../../src/io/files/upload/text-preview.ts';
import { storeFile } from '../../../support/files/file-storage.ts';
import { localStorage } from '../../../support/files/storages.ts';

const KEY = { owner: '7', fileId: '8' };

async function previewOf(t: Test, bytes: Uint8Array): Promise<string | undefined> {
  const { storage } = localStorage(t);
  await storeFile(storage, KEY, bytes);
  return await textPreview(storage, KEY);
}

t.test('text preview: text in any script, unchanged; nothing else', async (t) => {
  for (const text of ['hello', 'Größe 😀\r\n\t„x“', '{"a":1}'])
    t.equal(await previewOf(t, Buffer.from(text)), text);
  t.equal(await previewOf(t, Buffer.from('\ufeffwith a mark')), 'with a mark');
  for (const bytes of [
    [0xff, 0xfe, 0x41],
    [0x41, 0x00],
    [0x1b, 0x5b],
    [0xc3, 0x28],
    [0xed, 0xa0, 0x80],
  ])
    t.equal(await previewOf(t, Buffer.from(bytes)), undefined, String(bytes));
});

t.test('text preview: every control character but white space makes a file binary', async (t) => {
  const controls = Array.from({ length: 0xa1 }, (_, code) => String.fromCharCode(code)).filter((character) =>
    /\p{Cc}/u.test(character),
  );
  t.equal(controls.length, 65);
  const texts = controls.map((control) => `before ${control} after`);
  const previews: unknown[] = [];
  for (const text of texts) previews.push(await previewOf(t, Buffer.from(text)));
  t.same(
    previews,
    texts.map((text) => (/[\t\n\f\r]/.test(text) ? text : undefined)),
  );
});

t.test('text preview: a long text is cut between characters, within the bound of a module', async (t) => {
  for (const sample of ['a', 'é', '€', '😀', '"', '\n', 'x😀']) {
    const text = sample.repeat(100_000);
    const kept = (await previewOf(t, Buffer.from(text))) ?? '';
    t.ok(text.startsWith(kept), sample);
    t.ok(kept.length >= 8_000 && !/\p{Cs}/u.test(kept), `${kept.length} of ${sample}`);
    t.ok(kept.length <= 32_768 && Buffer.byteLength(JSON.stringify(kept)) <= 48 * 1024);
  }
});

t.test('text preview: no file and a failing storage are no text', async (t) => {
  const { storage } = localStorage(t);
  t.equal(await textPreview(storage, KEY), undefined);
  const failing = { open: async () => Promise.reject(new GatewayError('FileStorageFailed')) };
  t.equal(await textPreview(failing, KEY), undefined);
  const broken = { open: async () => Promise.reject(new TypeError('a bug')) };
  await t.rejects(textPreview(broken, KEY), TypeError);
});
