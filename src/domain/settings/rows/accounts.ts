/** Settings of accounts: logins and keys, sessions, one-time codes. */
import { count, flag, inGroup, seconds } from '../definitions.ts';

export const ACCOUNT_ROWS = {
  ...inGroup('Logins and keys', {
    ActiveKeysLimit: count(40, 'Keys of an account', 'keys', [20, 1, 1000], 'Active keys of one user.'),
    LastKeyProtection: flag(
      57,
      'Protect the last key',
      'The last key of an account cannot be removed, unless its person can log in by phone or e-mail.',
    ),
    KeyChangeFreshLoginSeconds: seconds(
      48,
      'Fresh login for key changes',
      [0, 0, 86_400],
      'Key changes need a login at most this old. 0 turns the rule off.',
    ),
    ChallengeSeconds: seconds(
      46,
      'Challenge ends after',
      [300, 10, 3600],
      'Life of a login or registration challenge.',
    ),
    UnknownKeyFailuresPerMinute: count(
      47,
      'Failures with keys',
      'per minute',
      [120, 0, 1_000_000],
      'Logins with unknown keys, failed and claimed registrations of keys from one address a minute. 0: no budget.',
    ),
    SignUpsPerNetworkPerDay: count(
      84,
      'Sign-ups of a network',
      'per day',
      [1000, 0, 1_000_000],
      'Accounts that one network creates in a day (UTC); loopback outside Production is not counted. 0: off.',
    ),
  }),
  ...inGroup('Sessions', {
    BrowserSessionIdleSeconds: seconds(
      43,
      'Idle browser session ends after',
      [86_400, 60, 31_536_000],
      'A browser session that is not used for so long ends.',
    ),
    BrowserSessionSeconds: seconds(
      44,
      'Browser session ends after',
      [2_592_000, 60, 31_536_000],
      'Longest life of a browser session.',
    ),
    McpSessionSeconds: seconds(
      45,
      'MCP session ends after',
      [86_400, 60, 31_536_000],
      'Life of an MCP session, reported as expiresUtc.',
    ),
    OAuthAccessSeconds: seconds(
      86,
      'Access token ends after',
      [3600, 60, 86_400],
      'Life of an access token of a connected host.',
    ),
  }),
  ...inGroup('One-time codes', {
    OneTimeCodesPerContactHour: count(
      58,
      'Codes of a contact',
      'per hour',
      [5, 1, 1000],
      'One-time codes sent to one phone number or e-mail address an hour.',
    ),
    OneTimeCodesPerIpHour: count(
      59,
      'Codes of an address',
      'per hour',
      [10, 1, 10_000],
      'One-time codes asked for by one address an hour.',
    ),
    OneTimeCodesPerDay: count(
      60,
      'Codes in all',
      'per day',
      [10_000, 1, 100_000],
      'One-time codes sent in one day (UTC), to all.',
    ),
  }),
} as const;
