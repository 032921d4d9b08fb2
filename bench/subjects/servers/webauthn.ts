/**
 * Verifications of passkey logins on one core: `library` calls it in a loop, `pool` sends them through the gateway's
 * worker pool with one thread. Takes `{durationMs}` and answers `{count, elapsedMs}`.
 */
import { verifyAuthenticationResponse } from '@simplewebauthn/server';
import { isoCBOR } from '@simplewebauthn/server/helpers';
import { get, makePasskey } from '../../../kit/authenticator.ts';
import type { AuthenticationTask } from '../../../src/workers/fido2.ts';
import { createWorkerPool } from '../../../src/workers/pool.ts';
import type { LoopPart } from '../../scenario.ts';
import { work } from './working.ts';

const PASSKEYS = 64;
/** Callers of the pool, each with one verification under way. */
const CALLERS = 32;
const PLACE = { challenge: Buffer.alloc(32, 7).toString('base64url'), origin: 'http://localhost:8080' };
const HANDLE = Buffer.alloc(32, 1).toString('base64url');

const tasks = Array.from({ length: PASSKEYS }, (): AuthenticationTask => {
  const passkey = makePasskey('ES256');
  const { response } = get(passkey, { ...PLACE, userHandle: HANDLE });
  return {
    challenge: PLACE.challenge,
    rpId: 'localhost',
    origins: [PLACE.origin],
    credentialId: passkey.id,
    clientDataJSON: response.clientDataJSON,
    authenticatorData: response.authenticatorData,
    signature: response.signature,
    userHandle: HANDLE,
    ownerHandle: HANDLE,
    cosePublicKey: isoCBOR.encode(passkey.cose),
    userVerificationRequired: true,
  };
});
let next = 0;

function nextTask(): AuthenticationTask {
  const task = tasks[next++ % PASSKEYS];
  if (task === undefined) throw new Error('no tasks');
  return task;
}

async function byLibrary(): Promise<void> {
  const { credentialId: id, clientDataJSON, authenticatorData, signature, ...task } = nextTask();
  const { verified } = await verifyAuthenticationResponse({
    response: {
      id,
      rawId: id,
      type: 'public-key',
      response: { clientDataJSON, authenticatorData, signature },
      clientExtensionResults: {},
    },
    expectedChallenge: task.challenge,
    expectedOrigin: [...task.origins],
    expectedRPID: task.rpId,
    credential: { id, publicKey: Uint8Array.from(task.cosePublicKey), counter: 0 },
  });
  if (!verified) throw new Error('a good assertion was refused');
}

function throughPool(): () => Promise<void> {
  const pool = createWorkerPool({ threads: 1, queueMax: 1_000 });
  return async () => {
    const result = await pool.run('verifyAuthentication', nextTask());
    if (!result.ok || result.value.result !== 'good') throw new Error('a good assertion was refused');
  };
}

async function verifyFor(durationMs: number): Promise<LoopPart> {
  const startedMs = performance.now();
  let count = 0;
  const caller = async () => {
    while (performance.now() - startedMs < durationMs) {
      await verifyOne();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: viaPool ? CALLERS : 1 }, caller));
  return { count, elapsedMs: performance.now() - startedMs };
}

const viaPool = process.argv[2] === 'pool';
const verifyOne = viaPool ? throughPool() : byLibrary;
// The first verification loads the library; it is no part of a round.
await verifyOne();
work<{ readonly durationMs: number }>('webauthn', ({ durationMs }) => verifyFor(durationMs));
