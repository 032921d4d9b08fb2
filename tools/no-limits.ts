/** Settings without limits of calls, for programs that look at something else. The limiter stays in the path. */
import type { SettingName, SettingValue } from '../src/domain/settings/settings.ts';

export const NO_LIMITS: Partial<Record<SettingName, SettingValue>> = {
  ApiRPSLimit: 0,
  IpRPSLimit: 0,
  PubKeyApiRPSLimit: 0,
  SessionApiRPSLimit: 0,
  UserApiRPSLimit: 0,
  McpApiRPSLimit: 0,
  UnknownKeyFailuresPerMinute: 0,
};

/** Likewise without limits of bandwidth and drafts. */
export const NO_FILE_LIMITS: Partial<Record<SettingName, SettingValue>> = {
  ...NO_LIMITS,
  FileUploadBytesPerSecond: 0,
  FileDownloadBytesPerSecond: 0,
  DraftsPerUser: 1000,
};
