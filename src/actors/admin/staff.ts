/**
 * Roles of the people who work in the admin panel, by account; one actor in all. Keys of the configuration stand beside
 * it.
 */
import { ROLES, type Role } from '../../domain/roles.ts';
import { defineActor, type Outcome, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import type { Protocol } from '../runtime/protocol.ts';

/** The only instance. */
export const STAFF_ID = 'all';
/** Accounts with a role, at most. */
const STAFF_MAX = 1_000;

interface StaffState {
  readonly roles: Readonly<Record<string, Role>>;
}

export interface SetRole {
  readonly type: 'setRole';
  readonly userId: string;
  /** Null takes the role away. */
  readonly role: Role | null;
  /** User id of the admin who changes it, and the address: both go to the audit log. */
  readonly by: string;
  readonly address: string;
  /** Set for the set-up link: only while no admin can get in, but for a recovery. `blocked`: admins that cannot. */
  readonly first?: { readonly blocked: readonly string[]; readonly recovers: boolean };
  /** Keys of the configuration make admins too, so that the last one here may go. */
  readonly hasKeys: boolean;
}

/** The account is about to be removed by its person. Refused to the last admin. */
export interface LeaveStaff {
  readonly type: 'leaveStaff';
  readonly userId: string;
  readonly address: string;
  /** Admins that cannot get in. */
  readonly blocked: readonly string[];
  readonly hasKeys: boolean;
}

interface RoleSet {
  readonly type: 'roleSet';
  readonly userId: string;
  readonly role: Role | null;
}

interface StaffQuery {
  readonly type: 'roles';
}

/** The reply to `setRole`. */
export interface StaffRole {
  readonly userId: string;
  readonly role: Role | null;
}

type StaffProtocol = Protocol<
  SetRole | LeaveStaff,
  { readonly setRole: StaffRole; readonly leaveStaff: StaffRole },
  StaffQuery,
  { readonly roles: StaffState['roles'] }
>;

export const staff = defineActor<StaffState, StaffProtocol, RoleSet>({
  kind: 'staff',
  version: 1,
  gated: true,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: () => ({ roles: {} }),
  decide: { setRole, leaveStaff },
  evolve({ roles }, { userId, role }) {
    const { [userId]: _, ...others } = roles;
    return { roles: role === null ? others : { ...others, [userId]: role } };
  },
  query: { roles: ({ roles }) => roles },
});

function setRole({ roles }: StaffState, command: SetRole, turn: Turn): Outcome<RoleSet, StaffRole> | Refusal {
  const { userId, role } = command;
  const before = roles[userId] ?? null;
  const admins = Object.keys(roles).filter((id) => roles[id] === 'admin');
  if (role !== null && !ROLES.includes(role)) return refuse('InvalidInput', 'role: viewer, support or admin');
  const { first } = command;
  if (first?.recovers === false && admins.some((id) => !first.blocked.includes(id)))
    return refuse('SetupLinkOver');
  // The first admin names the own account: the set-up link is what proves the right to it.
  if (first === undefined && userId === command.by)
    return refuse('InvalidInput', 'userId: your own role is for another admin to change');
  const isLast = before === 'admin' && role !== 'admin' && admins.length === 1;
  if (isLast && !command.hasKeys) return refuse('InvalidInput', 'userId: the last admin cannot step down');
  if (before === null && Object.keys(roles).length >= STAFF_MAX)
    return refuse('InvalidInput', `userId: at most ${STAFF_MAX} accounts have a role`);
  return roleGiven({ userId, role, before, by: command.by, address: command.address }, turn);
}

function leaveStaff(
  { roles }: StaffState,
  { userId, address, blocked, hasKeys }: LeaveStaff,
  turn: Turn,
): Outcome<RoleSet, StaffRole> | Refusal {
  const before = roles[userId] ?? null;
  if (before === null) return { reply: { userId, role: null } };
  const others = Object.keys(roles).filter(
    (id) => id !== userId && roles[id] === 'admin' && !blocked.includes(id),
  );
  if (before === 'admin' && others.length === 0 && !hasKeys) return refuse('LastAdmin');
  return roleGiven({ userId, role: null, before, by: userId, address }, turn);
}

interface GivenRole extends StaffRole {
  readonly before: Role | null;
  readonly by: string;
  readonly address: string;
}

function roleGiven(
  { userId, role, before, by, address }: GivenRole,
  { nowMs }: Turn,
): Outcome<RoleSet, StaffRole> {
  const fields = { subject: userId, before, after: role, address };
  return {
    events: [{ type: 'roleSet', userId, role }],
    audit: [{ utcMs: nowMs, event: 'roleChanged', userId: by, fields }],
    reply: { userId, role },
  };
}
