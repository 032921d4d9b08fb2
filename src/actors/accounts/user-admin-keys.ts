/**
 * Keys of an account that an admin adds (spec 5.1: "`register_key` or admin panel"), and what the login log says of a
 * change by an admin (docs/decisions/0002).
 */

import { audited, type Change, type Origin, outcome, type UserOutcome } from '../change.ts';
import { isRefusal, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import type { LogEntry, LogEventName } from './login-log.ts';
import type { KeyOwner } from './owners.ts';
import { type AddedKey, enroll, softwareKey } from './user-enrollment.ts';
import type { UserState } from './user-types.ts';
import { type Finding, verifyEnrollment } from './verification.ts';

export interface ClaimKey {
  readonly type: 'claimKey';
  /** base64url of 32 bytes. */
  readonly publicKey: string;
  readonly name?: string;
  /** Bits of `KeyFlag.McpAccess`, `KeyFlag.CardDav` and `KeyFlag.NoBrowserLogin`. */
  readonly access: number;
  /** The current index entry of this key. */
  readonly holder?: KeyOwner;
  /** Names the admin in `by`. */
  readonly origin: Origin;
}

interface ClaimKeyVerified {
  readonly type: 'claimKeyVerified';
  readonly command: ClaimKey;
  readonly finding: Finding | undefined;
}

export type AdminKeyCommand = ClaimKey | ClaimKeyVerified;

export type ClaimedKey = Pick<AddedKey, 'key'>;

export function decideAdminKey(
  state: UserState,
  command: AdminKeyCommand,
  turn: Turn,
): UserOutcome<ClaimedKey, ClaimKeyVerified> | Refusal {
  if (command.type === 'claimKeyVerified') return command.finding ?? judgeClaim(state, command.command, turn);
  const judged = judgeClaim(state, command, turn);
  if (isRefusal(judged)) return judged;
  const publicKey = Buffer.from(command.publicKey, 'base64url');
  return {
    next: async (ports) => ({
      type: 'claimKeyVerified',
      command,
      finding: await verifyEnrollment(ports, publicKey, undefined),
    }),
  };
}

/** Without a proof the key is a claim: it replaces no key of another account, and a proof replaces it. */
function judgeClaim(state: UserState, command: ClaimKey, turn: Turn): UserOutcome<ClaimedKey> | Refusal {
  if (state.createdMs === null) return refuse('NotFound', 'no such user');
  if (softwareKey(state, command.publicKey) !== undefined) return refuse('KeyAlreadyRegistered');
  const enrolment = enroll(state, turn, { ...command, passKeyFlag: false, proven: false });
  if (isRefusal(enrolment)) return enrolment;
  const { key, change } = enrolment;
  const fields = { keyId: key.id, publicKey: key.publicKey, flagsAfter: key.flags };
  return outcome(
    [
      change,
      keyLogged('key_added_by_admin', key.id, turn),
      audited(state, turn, 'admin_key_added', command.origin, fields),
    ],
    { key } satisfies ClaimedKey,
  );
}

/** The login log shows the owner that an admin changed a key, but neither who nor from where. */
export function keyLogged(event: LogEventName, keyId: string, turn: Turn): Change {
  const entry: LogEntry = {
    id: turn.newId(),
    utcMs: turn.nowMs,
    event,
    ok: true,
    error: null,
    kind: 'browser',
    loginType: null,
    keyId,
    appId: null,
    ip: '',
    userAgent: '',
  };
  return { events: [{ type: 'logged', entry }] };
}
