/** Roles as the gate asks for them at every request, and the one-time link that makes the first admin. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { ActorSystem } from '../actors/runtime/actor.ts';
import { type SetRole, STAFF_ID, staff } from '../actors/staff.ts';
import { GatewayError } from '../domain/errors.ts';
import type { Role } from '../domain/roles.ts';
import { MINUTE_MS } from '../domain/time.ts';

/** The set-up link is good for so long after a start (auth.md "Admin panel"). */
export const SETUP_LINK_MS = 30 * MINUTE_MS;
export const SETUP_TOKEN_BYTES = 32;

/** What the staff actor keeps, in memory: read synchronously, changed after the actor has it on disk. */
export class LiveStaff {
  readonly #roles = new Map<string, Role>();
  readonly #actors: ActorSystem;
  /** Keys of the configuration make admins as well. */
  readonly #hasKeys: boolean;

  constructor(actors: ActorSystem, hasKeys: boolean) {
    this.#actors = actors;
    this.#hasKeys = hasKeys;
  }

  async restore(): Promise<void> {
    const roles = await this.#actors.query<Record<string, Role>>(staff, STAFF_ID, { type: 'roles' });
    for (const [userId, role] of Object.entries(roles)) this.#roles.set(userId, role);
  }

  roleOf(userId: string): Role | undefined {
    return this.#roles.get(userId);
  }

  /** Somebody can get in: an account with the role, or a key of the configuration. */
  get hasAdmin(): boolean {
    return this.#hasKeys || [...this.#roles.values()].includes('admin');
  }

  list(): { userId: string; role: Role }[] {
    return [...this.#roles].map(([userId, role]) => ({ userId, role }));
  }

  /** Durable first, then effective at once. Fails with `InvalidInput`, `SetupLinkOver`. */
  async set(change: Omit<SetRole, 'type' | 'hasKeys'>): Promise<{ userId: string; role: Role | null }> {
    const command: SetRole = { type: 'setRole', hasKeys: this.#hasKeys, ...change };
    const answer = await this.#actors.ask<{ userId: string; role: Role | null }>(staff, STAFF_ID, command);
    if (answer.role === null) this.#roles.delete(answer.userId);
    else this.#roles.set(answer.userId, answer.role);
    return answer;
  }
}

/** One link a start, while there is no admin. What is kept is the token's hash. */
export class SetupLink {
  readonly #digest: Buffer;
  readonly #endsMs: number;
  #isUsed = false;

  constructor(token: string, nowMs: number) {
    this.#digest = digestOf(token);
    this.#endsMs = nowMs + SETUP_LINK_MS;
  }

  /** Throws `SetupLinkOver` for another token, a used one, or one that came too late: which of them is not told. */
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
