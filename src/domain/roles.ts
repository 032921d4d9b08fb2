/** Roles of accounts in the admin panel: each may do what the one before it may. */

export const ROLES = ['viewer', 'support', 'admin'] as const;
/** `viewer` reads, `support` also blocks accounts and resends webhooks, `admin` does everything. */
export type Role = (typeof ROLES)[number];

/** Does this role, if there is any, reach that far? */
export function reaches(role: Role | undefined, needed: Role): boolean {
  return role !== undefined && ROLES.indexOf(role) >= ROLES.indexOf(needed);
}
