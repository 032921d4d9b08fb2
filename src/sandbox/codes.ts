/** Capability codes: a holder of a code may use its resource without a login (spec 5.2). */
import { randomBytes } from 'node:crypto';
import type { ModuleCall } from './call-arguments.ts';
import { SandboxError } from './errors.ts';

const CODE_BYTES = 16;
const CODE = /^[A-Za-z0-9_-]{22}$/;

/** 128 random bits in base64url, 22 characters. */
export function makeCode(): string {
  return randomBytes(CODE_BYTES).toString('base64url');
}

/** Returns the subject that the code of a call opens: the query carries it for GET, the body for POST. */
export function opened<Subject>(byCode: ReadonlyMap<string, Subject>, call: ModuleCall): Subject {
  const code = call.query.get('code') ?? call.body['code'];
  const subject = typeof code === 'string' && CODE.test(code) ? byCode.get(code) : undefined;
  // The same answer for a malformed and an unknown one: nothing to learn from it.
  if (subject === undefined) throw new SandboxError('UnknownCode');
  return subject;
}
