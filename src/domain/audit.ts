/**
 * THE events of the audit log, each with its ring. A ring has a bound of its own, so that records that one caller can
 * make in number never push out records of another ring.
 */
import type { SettingsReader } from './settings/settings.ts';

/** `calls` is bounded by `AuditRowsMax`, each of the others by `AuditRingRowsMax`. */
export const AUDIT_RINGS = ['admin', 'accounts', 'logins', 'unproven', 'calls'] as const;
export type AuditRing = (typeof AUDIT_RINGS)[number];
/** Records that one node of a cluster alone has. All others are the same at every node. */
export type NodeRing = `node/${AuditRing}`;
/** Null: records of versions without rings, to which nothing is added. */
export type StoredRing = AuditRing | NodeRing | null;
export const SHARED_RINGS: readonly StoredRing[] = [null, ...AUDIT_RINGS];
export const NODE_RINGS: readonly NodeRing[] = AUDIT_RINGS.map(nodeRingOf);
export const STORED_RINGS: readonly StoredRing[] = [...SHARED_RINGS, ...NODE_RINGS];

export function nodeRingOf(ring: AuditRing): NodeRing {
  return `node/${ring}`;
}

export function isNodeRing(ring: StoredRing): ring is NodeRing {
  return ring?.startsWith('node/') === true;
}

/** The ring as an admin sees it. */
export function shownRing(ring: StoredRing): AuditRing | null {
  return isNodeRing(ring) ? (ring.slice('node/'.length) as AuditRing) : ring;
}

export const AUDIT_EVENTS = {
  // Actions of the staff.
  settingChanged: 'admin',
  roleChanged: 'admin',
  admin_recovery: 'admin',
  user_blocked: 'admin',
  user_unblocked: 'admin',
  sessions_ended_by_admin: 'admin',
  app_administered: 'admin',
  admin_key_added: 'admin',
  admin_key_updated: 'admin',
  admin_key_removed: 'admin',
  admin_resend: 'admin',
  payload_read: 'admin',
  list_exported: 'admin',
  'admin.reload': 'admin',
  mcp_tool_approved: 'admin',
  mcp_tool_hidden: 'admin',
  actorReset: 'admin',
  actorSkipped: 'admin',
  deadLetterRemoved: 'admin',
  // Changes by owners: keys, applications, access.
  key_added: 'accounts',
  key_updated: 'accounts',
  key_removed: 'accounts',
  key_proven: 'accounts',
  key_taken_over: 'accounts',
  account_removed: 'accounts',
  account_removal_untold: 'accounts',
  contact_added: 'accounts',
  contact_removed: 'accounts',
  app_created: 'accounts',
  app_updated: 'accounts',
  app_removed: 'accounts',
  app_key_rotated: 'accounts',
  app_key_ended: 'accounts',
  app_access_granted: 'accounts',
  app_access_revoked: 'accounts',
  host_connected: 'accounts',
  host_revoked: 'accounts',
  contact_sync_added: 'accounts',
  contact_sync_removed: 'accounts',
  upstream_connected: 'accounts',
  upstream_disconnected: 'accounts',
  upstream_ended: 'accounts',
  webhook_enabled: 'accounts',
  webhook_resend: 'accounts',
  // Sessions that were opened and ended.
  sign_up: 'logins',
  login: 'logins',
  logout: 'logins',
  sessions_closed: 'logins',
  host_refused: 'logins',
  token_reused: 'logins',
  // Records that a caller can cause without any proof.
  login_refused: 'unproven',
  sign_up_refused: 'unproven',
  key_change_refused: 'unproven',
  code_requested: 'unproven',
  code_undelivered: 'unproven',
  refusals_left_out: 'unproven',
  // Frequent calls of callers and modules.
  'mcp.tool': 'calls',
  'mcp.prompt': 'calls',
  'mcp.resource': 'calls',
  'rest.call': 'calls',
  file_uploaded: 'calls',
  file_removed: 'calls',
  webhook_disabled: 'calls',
  webhook_gap: 'calls',
} as const satisfies Record<string, AuditRing>;

export type AuditEvent = keyof typeof AUDIT_EVENTS;

export const AUDIT_EVENT_NAMES = Object.keys(AUDIT_EVENTS) as AuditEvent[];

/** Records that a ring holds, at most. Those without a ring are bounded as calls are. */
export function auditRowsMax(settings: SettingsReader, ring: StoredRing): number {
  const shown = shownRing(ring);
  return settings.get(shown === null || shown === 'calls' ? 'AuditRowsMax' : 'AuditRingRowsMax');
}
