/** Roles, read at every admin request, and the one-time link that makes the first admin. */
import { hash, timingSafeEqual } from 'node:crypto';
import { parseKeyOwner } from '../../actors/accounts/owners.ts';
import { user } from '../../actors/accounts/user.ts';
import { type LeaveStaff, type SetRole, STAFF_ID, staff } from '../../actors/admin/staff.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import type { RunningSystem } from '../../actors/runtime/system.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { Role } from '../../domain/roles.ts';
import { MINUTE_MS } from '../../domain/time.ts';

/** Lifetime of the set-up link after a start. */
export const SETUP_LINK_MS = 30 * MINUTE_MS;
export const SETUP_TOKEN_BYTES = 32;

/** The roles of the staff actor in memory: read synchronously, and again after every change, of whatever process. */
export class LiveStaff {
  readonly #roles = new Map<string, Role>();
  readonly #actors: ActorSystem;
  /** Keys of the configuration whose holders are admins. */
  readonly #adminPublicKeys: ReadonlySet<string>;
  readonly #local: Pick<RunningSystem, 'stored'>;

  /** `local`: the system of this node, which has the roles of the whole cluster. */
  constructor(
    actors: ActorSystem,
    adminPublicKeys: ReadonlySet<string>,
    local: Pick<RunningSystem, 'stored'>,
  ) {
    this.#actors = actors;
    this.#adminPublicKeys = adminPublicKeys;
    this.#local = local;
  }

  /** Reads the stored roles: at the start, and when another process may have changed one. */
  reload(): void {
    this.#roles.clear();
    const roles = this.#local.stored(staff, STAFF_ID, { type: 'roles' });
    for (const [userId, role] of Object.entries(roles)) this.#roles.set(userId, role);
  }

  roleOf(userId: string): Role | undefined {
    return this.#roles.get(userId);
  }

  /** The same, with keys of the configuration taken into account. */
  effectiveRoleOf(userId: string): Role | undefined {
    return this.#keyHolders().includes(userId) ? 'admin' : this.#roles.get(userId);
  }

  /** Accounts that proved to hold a key of the configuration. */
  #keyHolders(): string[] {
    return [...this.#adminPublicKeys].flatMap((key) => {
      const value = this.#actors.lookup('publicKey', key);
      const owner = value === undefined ? undefined : parseKeyOwner(value);
      return owner?.proven === true ? [owner.userId] : [];
    });
  }

  async #blockedAdmins(): Promise<string[]> {
    const admins = [...this.#roles].filter(([, role]) => role === 'admin').map(([userId]) => userId);
    const blocked: string[] = [];
    for (const userId of [...admins, ...this.#keyHolders()]) {
      const view = await this.#actors.query(user, userId, { type: 'account' });
      if (view?.blocked === true) blocked.push(userId);
    }
    return blocked;
  }

  /** True when an account with the role is not blocked, or the configuration has a key. */
  async hasAdmin(): Promise<boolean> {
    const blocked = await this.#blockedAdmins();
    const holders = this.#keyHolders();
    // The holder of a configured key can sign up, so the key counts without an account.
    if (this.#adminPublicKeys.size > holders.length) return true;
    const admins = [...this.#roles].filter(([, role]) => role === 'admin').map(([userId]) => userId);
    return [...admins, ...holders].some((userId) => !blocked.includes(userId));
  }

  /** Makes the first admin; `recovers`: one more. Fails with `SetupLinkOver` when an admin exists. */
  async setFirst(userId: string, address: string, recovers = false): Promise<void> {
    const first = { blocked: await this.#blockedAdmins(), recovers };
    await this.set({ userId, role: 'admin', by: userId, address, first });
  }

  /** Accounts with the role, of the configuration too. */
  admins(): readonly string[] {
    const given = [...this.#roles].filter(([, role]) => role === 'admin').map(([userId]) => userId);
    return [...new Set([...given, ...this.#keyHolders()])];
  }

  /** The configuration makes admins too. */
  get hasConfiguredKeys(): boolean {
    return this.#adminPublicKeys.size > 0;
  }

  list(): { userId: string; role: Role }[] {
    return [...this.#roles].map(([userId, role]) => ({ userId, role }));
  }

  /** Durable first, then effective at once. Fails with `InvalidInput`, `SetupLinkOver`. */
  async set(change: Omit<SetRole, 'type' | 'hasKeys'>): Promise<{ userId: string; role: Role | null }> {
    const command: SetRole = { type: 'setRole', hasKeys: this.#adminPublicKeys.size > 0, ...change };
    const answer = await this.#actors.ask(staff, STAFF_ID, command);
    // Not from the answer: those of two nodes may come in another order than their changes.
    this.reload();
    return answer;
  }

  /** Takes the role of an account away, which its person removes. Fails with `LastAdmin`. */
  async leave(userId: string, address: string): Promise<void> {
    if (this.roleOf(userId) === undefined) return;
    const blocked = await this.#blockedAdmins();
    const hasKeys = this.#adminPublicKeys.size > 0;
    const command: LeaveStaff = { type: 'leaveStaff', userId, address, blocked, hasKeys };
    await this.#actors.ask(staff, STAFF_ID, command);
    this.reload();
  }
}

/** The link of this start or of the last recovery; a new one replaces it. */
export class SetupLinks {
  current: SetupLink | undefined;

  constructor(current?: SetupLink) {
    this.current = current;
  }

  /** Does it recover? If so, and with `uses`, it is over from now on. Throws `SetupLinkOver`. */
  use(token: string, uses: boolean, nowMs: number): boolean {
    if (this.current === undefined) throw new GatewayError('SetupLinkOver');
    this.current.check(token, nowMs);
    // The roles refuse one of two uses at once, but not those of a recovery.
    if (uses && this.current.recovers) this.current.spend();
    return this.current.recovers;
  }

  /** There is an admin: the link of the start is over. */
  endSetup(): void {
    if (this.current?.recovers === false) this.current.spend();
  }
}

/** One link for each start while there is no admin, and for each recovery. Only the hash of the token is kept. */
export class SetupLink {
  /** True for a link of `admin recover`: it counts although an admin exists. */
  readonly recovers: boolean;
  readonly #digest: Buffer;
  readonly #endsMs: number;
  #isUsed = false;

  constructor(token: string, nowMs: number, recovers = false) {
    this.recovers = recovers;
    this.#digest = digestOf(token);
    this.#endsMs = nowMs + SETUP_LINK_MS;
  }

  /** Throws `SetupLinkOver` for a wrong, used or expired token; the error does not tell which. */
  check(token: string, nowMs: number): void {
    const isKnown = timingSafeEqual(digestOf(token), this.#digest);
    if (!isKnown || this.#isUsed || nowMs >= this.#endsMs) throw new GatewayError('SetupLinkOver');
  }

  spend(): void {
    this.#isUsed = true;
  }
}

function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
