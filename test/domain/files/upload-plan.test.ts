/** Header fields of v2 uploads: what each asks for, and what is refused instead of guessed. */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { readUploadPlan } from '../../../src/domain/files/upload-plan.ts';
import { runs } from '../../support/depth.ts';

const read = (fields: Record<string, string>) => readUploadPlan((name) => fields[name]);

function plan(fields: Record<string, string>) {
  const result = read(fields);
  if (!result.ok) throw new Error(`refused: ${result.fault}`);
  return result.plan;
}

t.test('upload plan: without a field the whole file, and nothing stays of half of it', async (t) => {
  t.match(plan({}), { offsetBytes: 0, keeps: false, appends: false, completes: 'always', resumable: false });
  t.same(plan({}).contentDigests, {});
});

t.test('upload plan: Range is a piece at its offset, kept, complete at the size', async (t) => {
  const rows: [string, object][] = [
    ['bytes=0-', { offsetBytes: 0, bodyBytes: undefined, totalBytes: undefined }],
    ['bytes=0-0', { offsetBytes: 0, bodyBytes: 1 }],
    ['bytes=10-19', { offsetBytes: 10, bodyBytes: 10, totalBytes: undefined }],
    ['bytes=10-19/20', { offsetBytes: 10, bodyBytes: 10, totalBytes: 20 }],
    ['bytes=10-19/*', { offsetBytes: 10, bodyBytes: 10, totalBytes: undefined }],
    ['bytes=10-/20', { offsetBytes: 10, bodyBytes: undefined, totalBytes: 20 }],
    ['Bytes=5-6', { offsetBytes: 5, bodyBytes: 2 }],
  ];
  for (const [range, expected] of rows) {
    t.match(plan({ range }), { ...expected, keeps: true, appends: false, completes: 'atSize' }, range);
  }
});

t.test('upload plan: a Range that cannot be read is refused, not taken for the whole file', async (t) => {
  const rows = [
    '',
    'bytes',
    'bytes=',
    'bytes=-5',
    'bytes=a-b',
    'bytes=5-4',
    'bytes=0-1,3-4',
    'bytes=0x0-5',
    'bytes=0-5/5',
    'bytes=0-5/x',
    'bytes=9-/9',
    'items=0-5',
    'bytes=9223372036854775808-',
    'bytes=9999999999999999-',
    'bytes=1.5-3',
  ];
  for (const range of rows) t.same(read({ range }), { ok: false, fault: 'Range' }, range);
});

t.test('upload plan: the fields of resumable uploads, version 8', async (t) => {
  const v8 = { 'upload-draft-interop-version': '8' };
  t.match(plan({ ...v8, 'upload-complete': '?0' }), {
    offsetBytes: 0,
    appends: false,
    keeps: true,
    completes: 'never',
  });
  t.match(plan({ 'upload-complete': '?1', 'upload-offset': '25' }), {
    offsetBytes: 25,
    appends: true,
    keeps: true,
    completes: 'always',
    resumable: true,
  });
  t.match(plan({ 'upload-complete': '?1', 'upload-offset': '25', 'upload-length': '100' }), {
    bodyBytes: 75,
    totalBytes: 100,
  });
  t.match(plan({ 'upload-complete': '?0', 'upload-length': '100' }), {
    bodyBytes: undefined,
    totalBytes: 100,
  });
  const refused: [Record<string, string>, string][] = [
    [{ 'upload-offset': '5' }, 'Upload-Complete'],
    [{ 'upload-complete': '1' }, 'Upload-Complete'],
    [{ 'upload-complete': '?2' }, 'Upload-Complete'],
    [{ 'upload-complete': '?0', 'upload-offset': '-1' }, 'Upload-Offset'],
    [{ 'upload-complete': '?0', 'upload-offset': '1.0' }, 'Upload-Offset'],
    [{ 'upload-complete': '?0', 'upload-offset': '1e3' }, 'Upload-Offset'],
    [{ 'upload-complete': '?0', 'upload-offset': '10', 'upload-length': '9' }, 'Upload-Length'],
    [{ 'upload-complete': '?0', 'upload-length': 'x' }, 'Upload-Length'],
    [{ 'upload-complete': '?0', range: 'bytes=0-1' }, 'Range beside Upload-Complete'],
  ];
  for (const [fields, fault] of refused) t.same(read(fields), { ok: false, fault }, JSON.stringify(fields));
});

t.test('upload plan: another interop version may send a whole file, never a piece', async (t) => {
  const v6 = { 'upload-draft-interop-version': '6' };
  t.match(plan({ ...v6, 'upload-complete': '?1' }), { resumable: false, keeps: false, completes: 'always' });
  const fault = 'Upload-Draft-Interop-Version';
  t.same(read({ ...v6, 'upload-complete': '?0' }), { ok: false, fault });
  t.same(read({ ...v6, 'upload-complete': '?1', 'upload-offset': '5' }), { ok: false, fault });
});

t.test('upload plan: digests of body and file; unknown algorithms are left out', async (t) => {
  const bytes = Buffer.from('hello');
  const sha256 = createHash('sha256').update(bytes).digest();
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(crc32(bytes));
  const both = `sha-256=:${sha256.toString('base64')}:, crc32=:${crc.toString('base64')}:`;
  t.same(plan({ 'content-digest': both }).contentDigests, { sha256, crc32: crc32(bytes) });
  t.same(plan({ 'repr-digest': both }).fileDigests, { sha256, crc32: crc32(bytes) });
  t.same(plan({ 'repr-digest': 'sha-512=:AAAA:' }).fileDigests, {});
  for (const value of [
    '',
    'sha-256',
    'sha-256=abc',
    'sha-256=:AAAA:',
    'crc32=:AAAA:',
    'sha-256=:!:',
    'crc32=1',
  ]) {
    t.same(read({ 'content-digest': value }), { ok: false, fault: 'Content-Digest' }, value);
    t.same(read({ 'repr-digest': value }), { ok: false, fault: 'Repr-Digest' }, value);
  }
});

t.test('upload plan: any text is read or refused, and numbers stay exact', async (t) => {
  const value = fc.oneof(fc.string(), fc.stringMatching(/^bytes=[0-9]{0,18}-[0-9]{0,18}(\/[0-9]{0,18})?$/));
  const names = fc.constantFrom('range', 'upload-offset', 'upload-complete', 'upload-length', 'repr-digest');
  fc.assert(
    fc.property(fc.dictionary(names, value), (fields) => {
      const result = read(fields);
      if (!result.ok) return true;
      const { offsetBytes, bodyBytes = 0, totalBytes = 0 } = result.plan;
      return [offsetBytes, bodyBytes, totalBytes].every((each) => Number.isSafeInteger(each) && each >= 0);
    }),
    runs(2_000),
  );
  t.pass();
});
