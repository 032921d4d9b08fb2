/**
 * The floor of mcp-login: native Ed25519 verifications on one core, keys imported beforehand, no guard, no thread to
 * reach. Takes `{durationMs}` and answers `{count, elapsedMs}`.
 */
import { createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import type { LoopPart } from '../../scenario.ts';
import { work } from './working.ts';

const KEYS = 512;
/** Between two looks at the clock. */
const BATCH = 64;

const signed = Array.from({ length: KEYS }, (_, index) => {
  const pair = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { format: 'der', type: 'spki' },
    privateKeyEncoding: { format: 'der', type: 'pkcs8' },
  });
  const message = Buffer.alloc(8);
  message.writeBigInt64LE(BigInt(index));
  return {
    key: createPublicKey({ format: 'der', type: 'spki', key: pair.publicKey }),
    message,
    signature: sign(null, message, { format: 'der', type: 'pkcs8', key: pair.privateKey }),
  };
});

function verifyFor(durationMs: number): LoopPart {
  const startedMs = performance.now();
  let count = 0;
  while (performance.now() - startedMs < durationMs) {
    for (let step = 0; step < BATCH; step += 1) {
      const { key, message, signature } = signed[count % KEYS] ?? signed[0] ?? unreachable();
      if (!verify(null, message, key, signature)) throw new Error('a good signature was refused');
      count += 1;
    }
  }
  return { count, elapsedMs: performance.now() - startedMs };
}

function unreachable(): never {
  throw new Error('no keys');
}

work<{ readonly durationMs: number }>('verify', ({ durationMs }) => verifyFor(durationMs));
