/** Keeps the audit log within its days: once a minute the records that are older go, a batch at a time. */
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import { type Clock, DAY_MS, MINUTE_MS } from '../../../domain/time.ts';
import type { Administration } from '../administration.ts';
import type { Schedule } from '../runtime-context.ts';

/** Wait between batches while there is more to remove, so that other commits interleave. */
const BATCH_WAIT_MS = 100;

interface AuditRetentionOptions {
  readonly administration: Pick<Administration, 'tidyAudit' | 'auditLeftOut'>;
  readonly settings: SettingsReader;
  readonly clock: Clock;
  readonly schedule: Pick<Schedule, 'timer'>;
}

/** Starts it; what it returns stops it. */
export function retainAudit({
  administration,
  settings,
  clock,
  schedule,
}: AuditRetentionOptions): () => void {
  const tidy = () => {
    const nowMs = clock();
    administration.auditLeftOut(nowMs);
    const beforeMs = nowMs - settings.get('AuditDays') * DAY_MS;
    const more = administration.tidyAudit(beforeMs);
    cancel = schedule.timer(more ? BATCH_WAIT_MS : MINUTE_MS, tidy);
  };
  let cancel = schedule.timer(MINUTE_MS, tidy);
  return () => cancel();
}
