/** File codes: one spelling per file, nothing else decodes, digits are ids. */
import { createCipheriv } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import { ID_MAX } from '../../../../src/domain/ids.ts';
import { createApiKeyCipher } from '../../../../src/io/apps/api-keys.ts';
import { createFileCodes, openFileCodes } from '../../../../src/io/files/download/file-code.ts';
import { runs } from '../../../support/depth.ts';

const codes = createFileCodes(Buffer.alloc(16, 3));
const ids = fc.bigInt({ min: 0n, max: ID_MAX }).map(String);

t.test('file code: any id is decoded from its code, which has 22 characters and never changes', async (t) => {
  fc.assert(
    fc.property(ids, (id) => {
      const code = codes.encode(id);
      return /^[A-Za-z0-9_-]{22}$/.test(code) && codes.decode(code) === id && codes.encode(id) === code;
    }),
    runs(5_000),
  );
  t.same(codes.read(codes.encode('0')), { fileId: '0', by: 'code' });
  t.same(codes.read(codes.encode(ID_MAX.toString())), { fileId: ID_MAX.toString(), by: 'code' });
});

t.test('file code: it is one block of AES-128, independent of earlier codes', async (t) => {
  const cipher = createCipheriv('aes-128-ecb', Buffer.alloc(16, 3), null).setAutoPadding(false);
  const clear = Buffer.alloc(16);
  clear.writeBigUInt64BE(1882417349637701632n);
  const expected = cipher.update(clear).toString('base64url');
  for (let round = 0; round < 3; round += 1) {
    t.equal(codes.encode('1882417349637701632'), expected);
    t.equal(codes.decode(expected), '1882417349637701632');
    codes.encode(String(round));
    codes.decode('A'.repeat(22));
  }
});

t.test(
  'file code: thousands of codes one after the other are each read as their own file, repeatedly',
  async (t) => {
    const many = Array.from({ length: 3_000 }, (_, number) => String(number * 7_919));
    const written = many.map((id) => codes.encode(id));
    for (let round = 0; round < 2; round += 1)
      for (const [index, code] of written.entries()) {
        const expected = { fileId: many[index], by: 'code' };
        if (!isDeepStrictEqual([codes.read(code), codes.read(code)], [expected, expected]))
          t.fail(`${code} was read as another file`);
      }
    t.same(codes.read('1234'), { fileId: '1234', by: 'id' });
  },
);

t.test('file code: a code with any one bit changed is unknown', async (t) => {
  const block = Buffer.from(codes.encode('1882417349637701632'), 'base64url');
  const withBit = (bit: number) => {
    const changed = Buffer.from(block);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    return changed.toString('base64url');
  };
  const bits = Array.from({ length: 128 }, (_, bit) => bit);
  t.same(
    bits.filter((bit) => codes.read(withBit(bit)) !== undefined),
    [],
  );
});

t.test('file code: any other text is unknown and throws nothing', async (t) => {
  const code = codes.encode('7');
  const last = String.fromCharCode(code.charCodeAt(21) + 1);
  for (const text of [
    '',
    'x',
    '-1',
    '+1',
    '1.0',
    ' 1',
    '1 ',
    '0x1',
    `${code}=`,
    `${code}A`,
    code.slice(1),
    'é',
  ])
    t.equal(codes.read(text), undefined, JSON.stringify(text));
  t.equal(codes.read(code.slice(0, 21) + last), undefined, 'a second spelling of the same bytes');
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), (text) => {
      const read = codes.read(text);
      return read === undefined || read.by === 'id';
    }),
    runs(50_000),
  );
});

// covers R73
t.test('file code: at most 19 digits are a raw id, within int64 and in one spelling', async (t) => {
  t.same(codes.read('42'), { fileId: '42', by: 'id' });
  t.same(codes.read('9223372036854775807'), { fileId: '9223372036854775807', by: 'id' });
  for (const text of ['9223372036854775808', '042', '00', '12345678901234567890', '1'.repeat(22)])
    t.equal(codes.read(text), undefined, text);
});

t.test('file code: codes of another key, or above int64, are unknown', async (t) => {
  t.equal(createFileCodes(Buffer.alloc(16, 4)).decode(codes.encode('7')), undefined);
  t.equal(codes.decode(codes.encode((2n ** 63n).toString())), undefined);
  t.throws(() => createFileCodes(Buffer.alloc(32)));
});

t.test('file code: the key is derived, so that codes stay valid after a restart', async (t) => {
  const cipher = createApiKeyCipher(Buffer.alloc(32, 7));
  const code = openFileCodes(cipher).encode('42');
  t.equal(openFileCodes(createApiKeyCipher(Buffer.alloc(32, 7))).decode(code), '42');
  t.equal(openFileCodes(createApiKeyCipher(Buffer.alloc(32, 8))).decode(code), undefined);
  t.notSame(cipher.deriveKey('file codes', 16), cipher.deriveKey('another use', 16));
});
