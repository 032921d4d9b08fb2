/** Subjects with the tests that show them: `file: part of the title`. */
export type Evidence = Readonly<Record<string, readonly string[]>>;

/** Of `POST /auth/v1/app/upsert_usr_app` and of the readings on it. */
export const REGISTRATION_TESTS: readonly string[] = [
  'test/io/apps/apps.test.ts: apps: a new application has the documented shape',
  'test/io/apps/apps.test.ts: apps: an update without an id finds the application',
  'test/io/apps/apps.test.ts: an Idempotency-Key repeats the first answer, API key included',
  'test/io/apps/apps.test.ts: an Idempotency-Key with other content is 422',
  'test/io/apps/apps.test.ts: shows the API key for an hour, also after a restart',
  'test/io/apps/apps.test.ts: other Idempotency-Keys push no API key out',
  'test/io/apps/apps.test.ts: whenever the process dies, a repeat with its Idempotency-Key',
  'test/actors/accounts/upcast.test.ts: accounts of version 4: registrations have no Idempotency-Key',
];
