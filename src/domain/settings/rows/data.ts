/** Settings of what is stored and sent: files, events and webhooks, the audit log. */
import { bytesPerSecond, count, days, flag, inGroup, ofFiles, seconds } from '../definitions.ts';

export const DATA_ROWS = {
  ...inGroup('Files', {
    FileMaxSizeBytes: ofFiles('The largest upload. It cannot exceed 100 MiB.', {
      id: 51,
      type: 'number',
      title: 'Largest file',
      unit: 'bytes',
      default: 20_971_520,
      min: 1,
      max: 104_857_600,
      clamps: true,
      summary: 'Largest file that is accepted. The hard cap is 100 MiB.',
    }),
    FileBlockedExtensions: ofFiles('Extensions that are refused, a string with semicolons.', {
      id: 52,
      type: 'text',
      title: 'Refused extensions',
      default: '',
      maxLength: 4096,
      summary: 'Denied file extensions, separated by semicolons; the dot is optional, case is ignored.',
    }),
    FileDownloadBytesPerSecond: ofFiles(
      'The quota that v2 downloads share. 0 is no quota.',
      bytesPerSecond(
        53,
        'Download speed',
        5_242_880,
        'Shared quota of v2 downloads. 0 turns throttling off.',
      ),
    ),
    FileUploadBytesPerSecond: ofFiles(
      'The quota that v2 uploads share. 0 is no quota.',
      bytesPerSecond(54, 'Upload speed', 2_097_152, 'Shared quota of v2 uploads. 0 turns throttling off.'),
    ),
    FileV1DownloadBytesPerSecond: bytesPerSecond(
      87,
      'Download speed, v1',
      0,
      'Shared quota of v1 downloads. 0: off.',
    ),
    FileV1UploadBytesPerSecond: bytesPerSecond(
      88,
      'Upload speed, v1',
      0,
      'Shared quota of v1 uploads. 0: off.',
    ),
    FileBandwidthKey: {
      id: 70,
      type: 'text',
      title: 'Who shares a speed',
      default: 'shared',
      maxLength: 64,
      summary:
        'Which streams share a quota of file bytes per second: those with the same text. {user} and {address} (IPv6: its /64) are filled in, so {user} gives every user a quota of their own. Within a quota users share evenly, then the streams of each.',
    },
    FileDownloadByIdEnabled: ofFiles(
      'If set, anonymous v2 downloads by id are allowed.',
      flag(55, 'Downloads by file id', 'Anonymous v2 downloads by raw file id.'),
    ),
    FileDownloadAuthRequired: ofFiles(
      'If set, no v2 download works without a session.',
      flag(56, 'Downloads need a session', 'Every v2 download needs a session.'),
    ),
    UploadInactivitySeconds: seconds(
      41,
      'Idle upload ends after',
      [600, 10, 86_400],
      'A v1 upload without a part for so long expires.',
    ),
    DraftLifetimeSeconds: seconds(
      42,
      'Draft ends after',
      [3600, 60, 604_800],
      'A v2 draft that was not completed by then is removed.',
    ),
    DraftsPerUser: count(
      77,
      'Drafts of an account',
      'drafts',
      [20, 1, 1000],
      'v2 drafts of one user that are open at the same time.',
    ),
  }),
  ...inGroup('Events and webhooks', {
    EventReorderMilliseconds: count(
      64,
      'Wait for earlier events',
      'ms',
      [500, 0, 60_000],
      'An event waits so long for earlier ones of all modules. 0: the order of arrival.',
    ),
    EventDays: days(65, 'Events are kept', [7, 1, 365], 'Events that are older leave the log.'),
    EventRowsMax: count(
      66,
      'Events in the log',
      'events',
      [1_000_000, 1000, 10_000_000],
      'Events in the log; the oldest go first.',
    ),
    WebhookPorts: {
      id: 79,
      type: 'text',
      title: 'Ports of webhooks',
      default: '',
      maxLength: 256,
      items: 'port',
      summary:
        "Ports of webhook addresses besides the scheme's own (443; 80 for http), separated by semicolons.",
    },
  }),
  ...inGroup('Audit log', {
    AuditRowsMax: count(
      61,
      'Records of calls',
      'records',
      [1_000_000, 1000, 1_000_000],
      'Records of calls, files and deliveries in the audit log; the oldest go first.',
    ),
    AuditRingRowsMax: count(
      85,
      'Records of each other kind',
      'records',
      [250_000, 1000, 1_000_000],
      'Records of each other ring of the audit log (admin acts; keys and applications; logins; refusals); the oldest go first.',
    ),
    AuditDays: days(
      62,
      'Records are kept',
      [365, 1, 3650],
      'Records of the audit log that are older are removed.',
    ),
    AnonymousRefusalsPerMinute: count(
      63,
      'Refusals without an account',
      'per minute',
      [60, 0, 10_000],
      'Refusals at this node without an account that enter the audit log one by one; further ones are counted.',
    ),
  }),
} as const;
