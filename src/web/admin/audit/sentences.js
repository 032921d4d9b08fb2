/**
 * THE table of sentences of the audit log: what was done, in words, for each event. The person before it is who acted;
 * the account behind it, where a record has another one, is whose account it was. Read by the page and the tests.
 */
import { LOGINS } from '../../shared/logins.js';

const shown = (value) => (value === null || value === undefined || value === '' ? 'nothing' : String(value));
const called = ({ name }) => (name ? ` “${name}”` : '');
const counted = (count, one, several) => `${count ?? 'some'} ${count === 1 ? one : several}`;
/** Fields that an admin set, by name: those that every record of the event has are left out. */
const flags = ({ appId: _id, address: _address, by: _by, ...fields }) =>
  Object.entries(fields)
    .map(([name, value]) => `${name} to ${shown(value)}`)
    .join(', ');
const outcome = ({ outcome: result }) =>
  result === 'ok' || result === undefined ? '' : `, with the outcome ${result}`;
const because = ({ error, reason }) => (error || reason ? `: ${error ?? reason}` : '');

/** `of`: the word before the other account. */
const always = (value) => (typeof value === 'string' ? () => value : value);
const did = (words, of = 'of') => ({ words: always(words), of: always(of) });

export const SENTENCES = {
  settingChanged: did(
    ({ name, before, after }) => `changed the setting ${name} from ${shown(before)} to ${shown(after)}`,
  ),
  roleChanged: did(
    ({ before, after }) => {
      if (after === null) return `took away the role ${before}`;
      return before === null ? `gave the role ${after}` : `changed the role from ${before} to ${after}`;
    },
    ({ before }) => (before === null ? 'to' : 'of'),
  ),
  admin_recovery: did('printed a recovery link at the machine'),
  user_blocked: did('blocked the account', ''),
  user_unblocked: did('unblocked the account', ''),
  sessions_ended_by_admin: did(({ count }) => `ended ${counted(count, 'session', 'sessions')}`),
  app_administered: did((fields) => `set ${flags(fields) || 'nothing'} for an application`),
  admin_key_added: did('added a key to the account', ''),
  admin_key_updated: did('changed a key'),
  admin_key_removed: did('removed a key'),
  admin_resend: did('sent a webhook of an application again'),
  payload_read: did('read what a webhook of an application carried'),
  list_exported: did(({ list }) => `exported the list ${shown(list)}`),
  'admin.reload': did((fields) => `reloaded the catalog${outcome(fields)}`),
  mcp_tool_approved: did(({ server, name }) => `approved the tool ${name} of the server ${server}`),
  mcp_tool_hidden: did(({ server, name }) => `hid the tool ${name} of the server ${server}`),
  actorReset: did(({ kind, id }) => `ended the quarantine of ${kind} ${id}`),
  actorSkipped: did(({ kind, id }) => `skipped a message of ${kind} ${id}`),
  deadLetterRemoved: did(({ kind, id }) => `removed a dead letter of ${kind} ${id}`),
  key_added: did('added a key'),
  key_updated: did('changed a key'),
  key_removed: did('removed a key'),
  key_proven: did('proved to hold a key'),
  key_taken_over: did('lost a key to an account that proved to hold it'),
  account_removed: did('removed the account'),
  account_removal_untold: did('was removed, which a module does not know'),
  contact_added: did(({ channel }) => `added a contact for ${shown(channel)}`),
  contact_removed: did(({ channel }) => `removed the contact for ${shown(channel)}`),
  app_created: did((fields) => `registered the application${called(fields)}`),
  app_updated: did((fields) => `changed the application${called(fields)}`),
  app_removed: did((fields) => `removed the application${called(fields)}`),
  app_key_rotated: did('made a new key for an application'),
  app_key_ended: did('ended the former key of an application'),
  app_access_granted: did('allowed an application'),
  app_access_revoked: did('took back the access of an application'),
  host_connected: did((fields) => `connected the host${called(fields)}`),
  host_revoked: did((fields) => `disconnected the host${called(fields)}`),
  contact_sync_added: did('added a device for contacts'),
  contact_sync_removed: did('removed a device for contacts'),
  upstream_connected: did(({ server }) => `connected the server ${server}`),
  upstream_disconnected: did(({ server }) => `disconnected the server ${server}`),
  upstream_ended: did(({ server }) => `lost the login at the server ${server}`),
  webhook_enabled: did('enabled the webhook of an application again'),
  webhook_resend: did('asked for a webhook again'),
  sign_up: did('signed up'),
  login: did(
    ({ loginType, channel }) =>
      `logged in${LOGINS[loginType] === undefined ? (channel ? ` by ${channel}` : '') : `, ${LOGINS[loginType]}`}`,
  ),
  logout: did('logged out'),
  sessions_closed: did(({ count }) => `closed ${counted(count, 'session', 'sessions')}`),
  host_refused: did('refused a host that asked for access'),
  token_reused: did('lost the access of a host, whose token was used twice'),
  login_refused: did((fields) => `was refused a login${because(fields)}`),
  sign_up_refused: did((fields) => `was refused a sign-up${because(fields)}`),
  key_change_refused: did((fields) => `was refused a change of keys${because(fields)}`),
  code_requested: did(({ channel }) => `asked for a code by ${shown(channel)}`),
  code_undelivered: did(({ channel }) => `got no code by ${shown(channel)}`),
  refusals_left_out: did('was refused more often than the log says'),
  'mcp.tool': did((fields) => `called the tool ${shown(fields.name)}${outcome(fields)}`),
  'mcp.prompt': did((fields) => `asked for the prompt ${shown(fields.name)}${outcome(fields)}`),
  'mcp.resource': did((fields) => `read the resource ${shown(fields.name)}${outcome(fields)}`),
  'rest.call': did((fields) => `called ${shown(fields.name)}${outcome(fields)}`),
  file_uploaded: did(({ sizeBytes }) => `uploaded a file of ${shown(sizeBytes)} bytes`),
  file_removed: did('removed a file'),
  webhook_disabled: did('has a webhook that was disabled'),
  webhook_gap: did('has a webhook that missed events'),
};

/** Fields that name an admin who acted, or the other account. */
const BY = 'by';
const SUBJECT = 'subject';

/**
 * `{ who, words, of, whom }` of a record: accounts as `{ id, nickname }`, null where there is none. The nickname of the
 * account that `by` or `subject` names is `otherNickname`.
 */
export function sentenceOf({ event, userId, nickname, otherNickname, fields }) {
  const { words, of } = SENTENCES[event] ?? did(`did ${event}`);
  const own = userId === null ? null : { id: userId, nickname };
  const other = (name) =>
    typeof fields[name] === 'string' ? { id: fields[name], nickname: otherNickname } : null;
  const by = other(BY);
  const [who, whom] = by === null ? [own, other(SUBJECT)] : [by, own];
  return { who, words: words(fields), of: of(fields), whom: whom?.id === who?.id ? null : whom };
}
